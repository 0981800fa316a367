// SPDX-License-Identifier: Apache-2.0
// Light or dark: as the system has it, or as somebody chose in this browser. No module, so that it runs
// before anything is drawn.

(() => {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const show = () => {
    let chosen = null;
    try {
      chosen = localStorage.getItem("theme");
    } catch {
      // Without storage it is as the system has it.
    }
    const own = ["light", "dark"].includes(chosen);
    const { dataset } = document.documentElement;
    dataset.chosen = own ? chosen : "auto";
    dataset.theme = own ? chosen : system.matches ? "dark" : "light";
  };
  system.addEventListener("change", show);
  addEventListener("storage", show); // chosen in another tab, or in this one
  show();
})();
