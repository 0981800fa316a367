-- What commit c1c6d69 (schema 2, before thoughts were kept) had written after some chats and two trainings.
PRAGMA user_version = 2;
PRAGMA application_id = 1611509767;
BEGIN TRANSACTION;
CREATE TABLE adapters (
  version INTEGER PRIMARY KEY AUTOINCREMENT,
  scope TEXT NOT NULL, parent INTEGER NOT NULL, run INTEGER REFERENCES runs (id),
  directory TEXT NOT NULL UNIQUE, sha256 TEXT NOT NULL, model TEXT NOT NULL,
  tainted TEXT NOT NULL DEFAULT '',
  baseline TEXT NOT NULL, metrics TEXT NOT NULL,
  created_at REAL NOT NULL
, erased_at REAL, pinned_at REAL, waits TEXT NOT NULL DEFAULT '') STRICT;
INSERT INTO "adapters" VALUES(1,'default',0,1,'v000001-21d89842fc44a171','da29d4b371d3824880ff8de7e499c1d804b14463c16607dfcb4d0f785746cd14','fake@dd814e9f','','{"mean":0.25,"weight":1.0}','{"gate":{"score":1.0},"loss":0.1}',1.7956212474840161801e+09,NULL,NULL,'');
INSERT INTO "adapters" VALUES(2,'default',1,2,'v000002-8543a353eabbcc23','553632434e62880fd7c06cebead7ab425844b7ae8fd4987e9253a56bc9a719b4','fake@dd814e9f','','{"mean":0.25,"weight":1.0}','{"gate":{"score":1.0},"loss":0.1}',1.795621247805464983e+09,NULL,NULL,'');
CREATE TABLE aliases (
  person TEXT NOT NULL PRIMARY KEY, alias TEXT NOT NULL UNIQUE
) STRICT, WITHOUT ROWID;
CREATE TABLE audit (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  at REAL NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL, detail TEXT NOT NULL,
  hash TEXT NOT NULL
) STRICT;
INSERT INTO "audit" VALUES(1,1.79562124700309038165e+09,'loopback:owner','enable','{"args":"","channel":"private","refused":"only a group or a channel is switched on or off: type it there, or name it with `channels`; a person is let in with `people grant`"}','06a9cc43193c0935cb3b2f469a06630e681f64c1ae403519b61ab57c28079754');
INSERT INTO "audit" VALUES(2,1.79562124734220337866e+09,'loopback:owner','train','{"args":"wait","channel":"private","done":true}','85411b8894fcd2e1dc19e166df90db2d8c85f788129c62eddfd74d4b9df3b4a1');
INSERT INTO "audit" VALUES(3,1.79562124754388976102e+09,'loopback:owner','train','{"args":"wait","channel":"private","done":true}','af81869b6873fd952e86921a02d2753bfa79f798f71cc0350ba118f83280d767');
CREATE TABLE canaries (
  version INTEGER PRIMARY KEY REFERENCES adapters (version),
  scope TEXT NOT NULL, model TEXT NOT NULL,
  against INTEGER NOT NULL, -- what the others meet
  state TEXT NOT NULL CHECK (state IN ('running', 'passed', 'lost', 'failed', 'superseded')),
  reason TEXT NOT NULL,
  began_at REAL NOT NULL, ended_at REAL
) STRICT;
CREATE TABLE channels (
  connector TEXT NOT NULL, account TEXT NOT NULL, channel TEXT NOT NULL,
  enabled_by TEXT NOT NULL, enabled_at REAL NOT NULL, noticed_at REAL, off_at REAL,
  PRIMARY KEY (connector, account, channel)
) STRICT, WITHOUT ROWID;
CREATE TABLE codes (
  purpose TEXT NOT NULL, subject TEXT NOT NULL,
  hash TEXT NOT NULL, role TEXT NOT NULL, expires_at REAL NOT NULL,
  failures INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (purpose, subject)
) STRICT, WITHOUT ROWID;
CREATE TABLE comparisons (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  scope TEXT NOT NULL, model TEXT NOT NULL,
  run INTEGER NOT NULL, old INTEGER NOT NULL, new INTEGER NOT NULL,
  held INTEGER NOT NULL,
  seed INTEGER NOT NULL, -- decides which of each pair is called A
  state TEXT NOT NULL CHECK (state IN ('preparing', 'asking', 'passed', 'lost', 'superseded')),
  opened_at REAL NOT NULL, closed_at REAL
) STRICT;
CREATE TABLE connector_values (
  connector TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (connector, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE cursors (
  connector TEXT NOT NULL, cursor TEXT NOT NULL, PRIMARY KEY (connector)
) STRICT, WITHOUT ROWID;
INSERT INTO "cursors" VALUES('loopback','53');
CREATE TABLE events (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  connector TEXT NOT NULL, account TEXT NOT NULL, event_id TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('rate', 'retract', 'comment', 'better', 'outcome', 'judge')),
  turn TEXT REFERENCES turns (id) ON DELETE CASCADE,
  rater TEXT NOT NULL,
  channel TEXT NOT NULL, message TEXT NOT NULL,
  source TEXT NOT NULL, value REAL CHECK (value BETWEEN -1 AND 1),
  retracts TEXT NOT NULL, text TEXT NOT NULL,
  time_ms INTEGER NOT NULL, tiebreak TEXT NOT NULL,
  received_at REAL NOT NULL,
  receipt TEXT NOT NULL,
  UNIQUE (connector, account, event_id)
) STRICT;
INSERT INTO "events" VALUES(1,'loopback','loopback','m3','rate','1ec97ee1b1683624','loopback:owner','owner','a2-0','reaction:👍',1.0,'','',3,'',1795621247.00828,'{"e":"m3","o":"accepted","t":"1ec97ee1b1683624","x":"Good. 1 of 8 until the next training."}');
INSERT INTO "events" VALUES(2,'loopback','loopback','m5','rate','24be6f9bda6ca80f','loopback:owner','owner','a4-1','reaction:👎',-1.0,'','',5,'',1.79562124701296520236e+09,'{"e":"m5","f":[["again:long","Too long"],["again:short","Too short"],["again:wrong","Wrong"],["again:tone","Tone"],["again:better","Say it better"]],"o":"accepted","t":"24be6f9bda6ca80f","x":"Bad. 2 of 8 until the next training."}');
INSERT INTO "events" VALUES(3,'loopback','loopback','m7','rate','883d244924f18701','loopback:owner','owner','a6-2','reaction:👍',1.0,'','',7,'',1.7956212470493664742e+09,'{"e":"m7","o":"accepted","t":"883d244924f18701","x":"Good. 3 of 8 until the next training."}');
INSERT INTO "events" VALUES(4,'loopback','loopback','m9','rate','495f6b00599b3bf7','loopback:owner','owner','a8-3','reaction:👎',-1.0,'','',9,'',1.7956212470987663269e+09,'{"e":"m9","f":[["again:long","Too long"],["again:short","Too short"],["again:wrong","Wrong"],["again:tone","Tone"],["again:better","Say it better"]],"o":"accepted","t":"495f6b00599b3bf7","x":"Bad. 4 of 8 until the next training."}');
INSERT INTO "events" VALUES(5,'loopback','loopback','m11','rate','4bf8fa6f11578f4d','loopback:owner','owner','a10-4','reaction:👍',1.0,'','',11,'',1.79562124716195678714e+09,'{"e":"m11","o":"accepted","t":"4bf8fa6f11578f4d","x":"Good. 5 of 8 until the next training."}');
INSERT INTO "events" VALUES(6,'loopback','loopback','m13','rate','648d6632f0678f63','loopback:owner','owner','a12-5','reaction:👎',-1.0,'','',13,'',1.79562124722984027859e+09,'{"e":"m13","f":[["again:long","Too long"],["again:short","Too short"],["again:wrong","Wrong"],["again:tone","Tone"],["again:better","Say it better"]],"o":"accepted","t":"648d6632f0678f63","x":"Bad. 6 of 8 until the next training."}');
INSERT INTO "events" VALUES(7,'loopback','loopback','m15','rate','893aaa4e72bc4fea','loopback:owner','owner','a14-6','reaction:👍',1.0,'','',15,'',1.79562124728137469291e+09,'{"e":"m15","o":"accepted","t":"893aaa4e72bc4fea","x":"Good. 7 of 8 until the next training."}');
INSERT INTO "events" VALUES(8,'loopback','loopback','m17','rate','a64c83f5b07f1187','loopback:owner','owner','a16-7','reaction:👎',-1.0,'','',17,'',1.79562124731437230103e+09,'{"e":"m17","f":[["again:long","Too long"],["again:short","Too short"],["again:wrong","Wrong"],["again:tone","Tone"],["again:better","Say it better"]],"o":"accepted","t":"a64c83f5b07f1187","x":"Bad. 8 of 8: the next training can start."}');
INSERT INTO "events" VALUES(9,'loopback','loopback','m20','rate','c1bc9c791c8affcc','loopback:owner','owner','a19-8','reaction:👍',1.0,'','',20,'',1.79562124750693368913e+09,'{"e":"m20","o":"accepted","t":"c1bc9c791c8affcc","x":"Good. 3 of 8 until the next training."}');
INSERT INTO "events" VALUES(10,'loopback','loopback','m22','rate','eb1357bbc478aa51','loopback:owner','owner','a21-9','reaction:👎',-1.0,'','',22,'',1.79562124751238203043e+09,'{"e":"m22","f":[["again:long","Too long"],["again:short","Too short"],["again:wrong","Wrong"],["again:tone","Tone"],["again:better","Say it better"]],"o":"accepted","t":"eb1357bbc478aa51","x":"Bad. 4 of 8 until the next training."}');
INSERT INTO "events" VALUES(11,'loopback','loopback','m24','rate','df461cf1118305f5','loopback:owner','owner','a23-10','reaction:👍',1.0,'','',24,'',1.79562124752484393117e+09,'{"e":"m24","o":"accepted","t":"df461cf1118305f5","x":"Good. 5 of 8 until the next training."}');
INSERT INTO "events" VALUES(12,'loopback','loopback','m26','rate','bdf16024c80b521f','loopback:owner','owner','a25-11','reaction:👎',-1.0,'','',26,'',1.79562124752838659291e+09,'{"e":"m26","f":[["again:long","Too long"],["again:short","Too short"],["again:wrong","Wrong"],["again:tone","Tone"],["again:better","Say it better"]],"o":"accepted","t":"bdf16024c80b521f","x":"Bad. 6 of 8 until the next training."}');
INSERT INTO "events" VALUES(13,'loopback','loopback','m28','rate','fc9ca68a3fc6bf2d','loopback:owner','owner','a27-12','reaction:👍',1.0,'','',28,'',1.79562124753189945218e+09,'{"e":"m28","o":"accepted","t":"fc9ca68a3fc6bf2d","x":"Good. 7 of 8 until the next training."}');
INSERT INTO "events" VALUES(14,'loopback','loopback','m30','rate','f1c14b5be1760490','loopback:owner','owner','a29-13','reaction:👎',-1.0,'','',30,'',1.79562124753527855873e+09,'{"e":"m30","f":[["again:long","Too long"],["again:short","Too short"],["again:wrong","Wrong"],["again:tone","Tone"],["again:better","Say it better"]],"o":"accepted","t":"f1c14b5be1760490","x":"Bad. 8 of 8: the next training can start."}');
INSERT INTO "events" VALUES(15,'loopback','loopback','m32','rate','7a802fdbd36fc5dd','loopback:owner','owner','a31-14','reaction:👍',1.0,'','',32,'',1.79562124753852725032e+09,'{"e":"m32","o":"accepted","t":"7a802fdbd36fc5dd","x":"Good. 8 of 8: the next training can start."}');
INSERT INTO "events" VALUES(16,'loopback','loopback','m34','rate','6bc2ffc43a498862','loopback:owner','owner','a33-15','reaction:👎',-1.0,'','',34,'',1.79562124754169559481e+09,'{"e":"m34","f":[["again:long","Too long"],["again:short","Too short"],["again:wrong","Wrong"],["again:tone","Tone"],["again:better","Say it better"]],"o":"accepted","t":"6bc2ffc43a498862","x":"Bad. 8 of 8: the next training can start."}');
INSERT INTO "events" VALUES(17,'loopback','loopback','m37','rate','672049aa94205725','loopback:owner','owner','a36-16','reaction:👍',1.0,'','',37,'',1.79562124783835315704e+09,'{"e":"m37","o":"accepted","t":"672049aa94205725","x":"Good. 4 of 8 until the next training."}');
INSERT INTO "events" VALUES(18,'loopback','loopback','m39','rate','516395e86e66745a','loopback:owner','owner','a38-17','reaction:👎',-1.0,'','',39,'',1.79562124784196114543e+09,'{"e":"m39","f":[["again:long","Too long"],["again:short","Too short"],["again:wrong","Wrong"],["again:tone","Tone"],["again:better","Say it better"]],"o":"accepted","t":"516395e86e66745a","x":"Bad. 5 of 8 until the next training."}');
INSERT INTO "events" VALUES(19,'loopback','loopback','m41','rate','24777f7f8054ec41','loopback:owner','owner','a40-18','reaction:👍',1.0,'','',41,'',1.79562124784555673601e+09,'{"e":"m41","o":"accepted","t":"24777f7f8054ec41","x":"Good. 6 of 8 until the next training."}');
INSERT INTO "events" VALUES(20,'loopback','loopback','m43','rate','fabac83ddc6007e5','loopback:owner','owner','a42-19','reaction:👎',-1.0,'','',43,'',1.79562124784921431537e+09,'{"e":"m43","f":[["again:long","Too long"],["again:short","Too short"],["again:wrong","Wrong"],["again:tone","Tone"],["again:better","Say it better"]],"o":"accepted","t":"fabac83ddc6007e5","x":"Bad. 7 of 8 until the next training."}');
INSERT INTO "events" VALUES(21,'loopback','loopback','m45','rate','95bb1b180e6dc689','loopback:owner','owner','a44-20','reaction:👍',1.0,'','',45,'',1.79562124785253357885e+09,'{"e":"m45","o":"accepted","t":"95bb1b180e6dc689","x":"Good. 8 of 8: the next training can start."}');
INSERT INTO "events" VALUES(22,'loopback','loopback','m47','rate','a09c34044fe54146','loopback:owner','owner','a46-21','reaction:👍',1.0,'','',47,'',1.79562124785582113268e+09,'{"e":"m47","o":"accepted","t":"a09c34044fe54146","x":"Good. 8 of 8: the next training can start."}');
INSERT INTO "events" VALUES(23,'loopback','loopback','m48','rate','a09c34044fe54146','loopback:rater','owner','a46-21','reaction:👎',-1.0,'','',48,'',1.79562124785665297509e+09,'{"e":"m48","f":[["again:long","Too long"],["again:short","Too short"],["again:wrong","Wrong"],["again:tone","Tone"],["again:better","Say it better"]],"o":"accepted","t":"a09c34044fe54146","x":"Bad. 8 of 8: the next training can start."}');
INSERT INTO "events" VALUES(24,'loopback','loopback','m51','comment','8e69b093aab1c390','loopback:owner','owner','','command',NULL,'','too long',51,'',1.79562124786140060424e+09,'{"e":"m51","o":"accepted","t":"8e69b093aab1c390","x":"Your reason is kept. 8 of 8: the next training can start."}');
INSERT INTO "events" VALUES(25,'loopback','loopback','m52','rate','fabac83ddc6007e5','loopback:rater','owner','a42-19','reaction:👍',1.0,'','',52,'',1.79562124786553525919e+09,'{"e":"m52","o":"accepted","t":"fabac83ddc6007e5","x":"Good. 7 of 8 until the next training."}');
INSERT INTO "events" VALUES(26,'loopback','loopback','m53','rate','95bb1b180e6dc689','loopback:rater','owner','a44-20','reaction:👍',1.0,'','',53,'',1.79562124786640405654e+09,'{"e":"m53","o":"accepted","t":"95bb1b180e6dc689","x":"Good. 7 of 8 until the next training."}');
CREATE TABLE grants (
  person TEXT NOT NULL PRIMARY KEY,
  role TEXT NOT NULL CHECK (role IN ('owner', 'rater', 'talker')),
  given_by TEXT NOT NULL, since REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE inbox (
  connector TEXT NOT NULL, account TEXT NOT NULL, event_id TEXT NOT NULL,
  payload TEXT NOT NULL, receipt TEXT NOT NULL, received_at REAL NOT NULL,
  PRIMARY KEY (connector, account, event_id)
) STRICT, WITHOUT ROWID;
INSERT INTO "inbox" VALUES('loopback','loopback','m1','','{"e":"m1","o":"failed","t":"","x":"only a group or a channel is switched on or off: type it there, or name it with `channels`; a person is let in with `people grant`."}',1.79562124698347878458e+09);
INSERT INTO "inbox" VALUES('loopback','loopback','m10','','{"e":"m10","o":"accepted","t":"","x":""}',1.79562124711409091953e+09);
INSERT INTO "inbox" VALUES('loopback','loopback','m12','','{"e":"m12","o":"accepted","t":"","x":""}',1795621247.17432);
INSERT INTO "inbox" VALUES('loopback','loopback','m14','','{"e":"m14","o":"accepted","t":"","x":""}',1.79562124724937033654e+09);
INSERT INTO "inbox" VALUES('loopback','loopback','m16','','{"e":"m16","o":"accepted","t":"","x":""}',1.79562124728605866435e+09);
INSERT INTO "inbox" VALUES('loopback','loopback','m18','','{"e":"m18","o":"accepted","t":"","x":"v1 answers now: better"}',1.79562124732686114315e+09);
INSERT INTO "inbox" VALUES('loopback','loopback','m19','','{"e":"m19","o":"accepted","t":"","x":""}',1.79562124750394749642e+09);
INSERT INTO "inbox" VALUES('loopback','loopback','m2','','{"e":"m2","o":"accepted","t":"","x":""}',1.79562124700461053848e+09);
INSERT INTO "inbox" VALUES('loopback','loopback','m21','','{"e":"m21","o":"accepted","t":"","x":""}',1.79562124750952649115e+09);
INSERT INTO "inbox" VALUES('loopback','loopback','m23','','{"e":"m23","o":"accepted","t":"","x":""}',1.79562124751335763935e+09);
INSERT INTO "inbox" VALUES('loopback','loopback','m25','','{"e":"m25","o":"accepted","t":"","x":""}',1.7956212475258693695e+09);
INSERT INTO "inbox" VALUES('loopback','loopback','m27','','{"e":"m27","o":"accepted","t":"","x":""}',1.79562124752941823001e+09);
INSERT INTO "inbox" VALUES('loopback','loopback','m29','','{"e":"m29","o":"accepted","t":"","x":""}',1.79562124753275489811e+09);
INSERT INTO "inbox" VALUES('loopback','loopback','m31','','{"e":"m31","o":"accepted","t":"","x":""}',1.79562124753616213796e+09);
INSERT INTO "inbox" VALUES('loopback','loopback','m33','','{"e":"m33","o":"accepted","t":"","x":""}',1.79562124753939437865e+09);
INSERT INTO "inbox" VALUES('loopback','loopback','m35','','{"e":"m35","o":"accepted","t":"","x":"v2 answers now: better"}',1.79562124754257559783e+09);
INSERT INTO "inbox" VALUES('loopback','loopback','m36','','{"e":"m36","o":"accepted","t":"","x":""}',1.79562124783575868605e+09);
INSERT INTO "inbox" VALUES('loopback','loopback','m38','','{"e":"m38","o":"accepted","t":"","x":""}',1.79562124783942794799e+09);
INSERT INTO "inbox" VALUES('loopback','loopback','m4','','{"e":"m4","o":"accepted","t":"","x":""}',1.79562124701019835471e+09);
INSERT INTO "inbox" VALUES('loopback','loopback','m40','','{"e":"m40","o":"accepted","t":"","x":""}',1.79562124784290504456e+09);
INSERT INTO "inbox" VALUES('loopback','loopback','m42','','{"e":"m42","o":"accepted","t":"","x":""}',1.79562124784653758999e+09);
INSERT INTO "inbox" VALUES('loopback','loopback','m44','','{"e":"m44","o":"accepted","t":"","x":""}',1.79562124785009431839e+09);
INSERT INTO "inbox" VALUES('loopback','loopback','m46','','{"e":"m46","o":"accepted","t":"","x":""}',1.79562124785344862931e+09);
INSERT INTO "inbox" VALUES('loopback','loopback','m49','','{"e":"m49","o":"accepted","t":"","x":""}',1.79562124785747742649e+09);
INSERT INTO "inbox" VALUES('loopback','loopback','m51','','{"e":"m51","o":"accepted","t":"8e69b093aab1c390","x":"Your reason is kept. 8 of 8: the next training can start. “v2 says: three stars”"}',1.79562124786024975781e+09);
INSERT INTO "inbox" VALUES('loopback','loopback','m6','','{"e":"m6","o":"accepted","t":"","x":""}',1.7956212470178053379e+09);
INSERT INTO "inbox" VALUES('loopback','loopback','m8','','{"e":"m8","o":"accepted","t":"","x":""}',1.79562124705267214773e+09);
CREATE TABLE labels (
  turn TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
  rater TEXT NOT NULL,
  value REAL NOT NULL, event_id TEXT NOT NULL, event_seq INTEGER NOT NULL, stars REAL,
  PRIMARY KEY (turn, rater)
) STRICT, WITHOUT ROWID;
INSERT INTO "labels" VALUES('1ec97ee1b1683624','loopback:owner',1.0,'m3',1,NULL);
INSERT INTO "labels" VALUES('24777f7f8054ec41','loopback:owner',1.0,'m41',19,NULL);
INSERT INTO "labels" VALUES('24be6f9bda6ca80f','loopback:owner',-1.0,'m5',2,NULL);
INSERT INTO "labels" VALUES('495f6b00599b3bf7','loopback:owner',-1.0,'m9',4,NULL);
INSERT INTO "labels" VALUES('4bf8fa6f11578f4d','loopback:owner',1.0,'m11',5,NULL);
INSERT INTO "labels" VALUES('516395e86e66745a','loopback:owner',-1.0,'m39',18,NULL);
INSERT INTO "labels" VALUES('648d6632f0678f63','loopback:owner',-1.0,'m13',6,NULL);
INSERT INTO "labels" VALUES('672049aa94205725','loopback:owner',1.0,'m37',17,NULL);
INSERT INTO "labels" VALUES('6bc2ffc43a498862','loopback:owner',-1.0,'m34',16,NULL);
INSERT INTO "labels" VALUES('7a802fdbd36fc5dd','loopback:owner',1.0,'m32',15,NULL);
INSERT INTO "labels" VALUES('883d244924f18701','loopback:owner',1.0,'m7',3,NULL);
INSERT INTO "labels" VALUES('893aaa4e72bc4fea','loopback:owner',1.0,'m15',7,NULL);
INSERT INTO "labels" VALUES('95bb1b180e6dc689','loopback:owner',1.0,'m45',21,NULL);
INSERT INTO "labels" VALUES('95bb1b180e6dc689','loopback:rater',1.0,'m53',26,NULL);
INSERT INTO "labels" VALUES('a09c34044fe54146','loopback:owner',1.0,'m47',22,NULL);
INSERT INTO "labels" VALUES('a09c34044fe54146','loopback:rater',-1.0,'m48',23,NULL);
INSERT INTO "labels" VALUES('a64c83f5b07f1187','loopback:owner',-1.0,'m17',8,NULL);
INSERT INTO "labels" VALUES('bdf16024c80b521f','loopback:owner',-1.0,'m26',12,NULL);
INSERT INTO "labels" VALUES('c1bc9c791c8affcc','loopback:owner',1.0,'m20',9,NULL);
INSERT INTO "labels" VALUES('df461cf1118305f5','loopback:owner',1.0,'m24',11,NULL);
INSERT INTO "labels" VALUES('eb1357bbc478aa51','loopback:owner',-1.0,'m22',10,NULL);
INSERT INTO "labels" VALUES('f1c14b5be1760490','loopback:owner',-1.0,'m30',14,NULL);
INSERT INTO "labels" VALUES('fabac83ddc6007e5','loopback:owner',-1.0,'m43',20,NULL);
INSERT INTO "labels" VALUES('fabac83ddc6007e5','loopback:rater',1.0,'m52',25,NULL);
INSERT INTO "labels" VALUES('fc9ca68a3fc6bf2d','loopback:owner',1.0,'m28',13,NULL);
CREATE TABLE links (
  person TEXT NOT NULL PRIMARY KEY, identity TEXT NOT NULL, since REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE messages (
  connector TEXT NOT NULL, account TEXT NOT NULL, channel TEXT NOT NULL, message TEXT NOT NULL,
  turn TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE, position INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (connector, account, channel, message)
) STRICT, WITHOUT ROWID;
INSERT INTO "messages" VALUES('loopback','loopback','owner','a10-4','4bf8fa6f11578f4d',0);
INSERT INTO "messages" VALUES('loopback','loopback','owner','a12-5','648d6632f0678f63',0);
INSERT INTO "messages" VALUES('loopback','loopback','owner','a14-6','893aaa4e72bc4fea',0);
INSERT INTO "messages" VALUES('loopback','loopback','owner','a16-7','a64c83f5b07f1187',0);
INSERT INTO "messages" VALUES('loopback','loopback','owner','a19-8','c1bc9c791c8affcc',0);
INSERT INTO "messages" VALUES('loopback','loopback','owner','a2-0','1ec97ee1b1683624',0);
INSERT INTO "messages" VALUES('loopback','loopback','owner','a21-9','eb1357bbc478aa51',0);
INSERT INTO "messages" VALUES('loopback','loopback','owner','a23-10','df461cf1118305f5',0);
INSERT INTO "messages" VALUES('loopback','loopback','owner','a25-11','bdf16024c80b521f',0);
INSERT INTO "messages" VALUES('loopback','loopback','owner','a27-12','fc9ca68a3fc6bf2d',0);
INSERT INTO "messages" VALUES('loopback','loopback','owner','a29-13','f1c14b5be1760490',0);
INSERT INTO "messages" VALUES('loopback','loopback','owner','a31-14','7a802fdbd36fc5dd',0);
INSERT INTO "messages" VALUES('loopback','loopback','owner','a33-15','6bc2ffc43a498862',0);
INSERT INTO "messages" VALUES('loopback','loopback','owner','a36-16','672049aa94205725',0);
INSERT INTO "messages" VALUES('loopback','loopback','owner','a38-17','516395e86e66745a',0);
INSERT INTO "messages" VALUES('loopback','loopback','owner','a4-1','24be6f9bda6ca80f',0);
INSERT INTO "messages" VALUES('loopback','loopback','owner','a40-18','24777f7f8054ec41',0);
INSERT INTO "messages" VALUES('loopback','loopback','owner','a42-19','fabac83ddc6007e5',0);
INSERT INTO "messages" VALUES('loopback','loopback','owner','a44-20','95bb1b180e6dc689',0);
INSERT INTO "messages" VALUES('loopback','loopback','owner','a46-21','a09c34044fe54146',0);
INSERT INTO "messages" VALUES('loopback','loopback','owner','a49-22','8e69b093aab1c390',0);
INSERT INTO "messages" VALUES('loopback','loopback','owner','a6-2','883d244924f18701',0);
INSERT INTO "messages" VALUES('loopback','loopback','owner','a8-3','495f6b00599b3bf7',0);
CREATE TABLE pairs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  comparison INTEGER NOT NULL REFERENCES comparisons (id) ON DELETE CASCADE,
  turn TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
  owner TEXT NOT NULL, -- whom it is asked, connector:id
  temperature REAL NOT NULL, seed INTEGER NOT NULL,
  prompt_tokens BLOB NOT NULL,
  old_answer TEXT NOT NULL, old_tokens BLOB NOT NULL, old_logprobs BLOB NOT NULL,
  new_answer TEXT NOT NULL, new_tokens BLOB NOT NULL, new_logprobs BLOB NOT NULL,
  choice TEXT CHECK (choice IN ('old', 'new', 'same', 'skip')),
  chosen_by TEXT, chosen_at REAL,
  UNIQUE (comparison, turn)
) STRICT;
CREATE TABLE pointers (
  scope TEXT NOT NULL, model TEXT NOT NULL, version INTEGER NOT NULL, updated_at REAL NOT NULL,
  PRIMARY KEY (scope, model)
) STRICT, WITHOUT ROWID;
INSERT INTO "pointers" VALUES('default','fake@dd814e9f',2,1.79562124782406497e+09);
CREATE TABLE quarantines (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  since REAL NOT NULL, last_event_seq INTEGER NOT NULL,
  made_by TEXT NOT NULL, made_at REAL NOT NULL
) STRICT;
CREATE TABLE retries (
  turn TEXT NOT NULL PRIMARY KEY REFERENCES turns (id) ON DELETE CASCADE,
  instead_of TEXT NOT NULL, -- a turn, which may have expired
  depth INTEGER NOT NULL,   -- how many answers to the question came before it
  hint TEXT NOT NULL, asked_by TEXT NOT NULL,
  time_ms INTEGER NOT NULL, tiebreak TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE run_items (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  turn TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
  split TEXT NOT NULL CHECK (split IN ('train', 'held_out')),
  reward REAL NOT NULL, labels TEXT NOT NULL, weight REAL NOT NULL DEFAULT 1, replayed INTEGER NOT NULL DEFAULT 0, position INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (run, turn)
) STRICT, WITHOUT ROWID;
INSERT INTO "run_items" VALUES(1,'1ec97ee1b1683624','held_out',1.0,'{"loopback:owner":1.0}',1.0,0,0);
INSERT INTO "run_items" VALUES(1,'24be6f9bda6ca80f','train',-1.0,'{"loopback:owner":-1.0}',1.0,0,1);
INSERT INTO "run_items" VALUES(1,'495f6b00599b3bf7','train',-1.0,'{"loopback:owner":-1.0}',1.0,0,3);
INSERT INTO "run_items" VALUES(1,'4bf8fa6f11578f4d','train',1.0,'{"loopback:owner":1.0}',1.0,0,4);
INSERT INTO "run_items" VALUES(1,'648d6632f0678f63','held_out',-1.0,'{"loopback:owner":-1.0}',1.0,0,5);
INSERT INTO "run_items" VALUES(1,'883d244924f18701','train',1.0,'{"loopback:owner":1.0}',1.0,0,2);
INSERT INTO "run_items" VALUES(1,'893aaa4e72bc4fea','train',1.0,'{"loopback:owner":1.0}',1.0,0,6);
INSERT INTO "run_items" VALUES(1,'a64c83f5b07f1187','train',-1.0,'{"loopback:owner":-1.0}',1.0,0,7);
INSERT INTO "run_items" VALUES(2,'1ec97ee1b1683624','train',1.0,'{"loopback:owner":1.0}',1.0,0,0);
INSERT INTO "run_items" VALUES(2,'648d6632f0678f63','train',-1.0,'{"loopback:owner":-1.0}',1.0,0,1);
INSERT INTO "run_items" VALUES(2,'6bc2ffc43a498862','held_out',-1.0,'{"loopback:owner":-1.0}',1.0,0,9);
INSERT INTO "run_items" VALUES(2,'7a802fdbd36fc5dd','train',1.0,'{"loopback:owner":1.0}',1.0,0,8);
INSERT INTO "run_items" VALUES(2,'bdf16024c80b521f','train',-1.0,'{"loopback:owner":-1.0}',1.0,0,5);
INSERT INTO "run_items" VALUES(2,'c1bc9c791c8affcc','train',1.0,'{"loopback:owner":1.0}',1.0,0,2);
INSERT INTO "run_items" VALUES(2,'df461cf1118305f5','held_out',1.0,'{"loopback:owner":1.0}',1.0,0,4);
INSERT INTO "run_items" VALUES(2,'eb1357bbc478aa51','train',-1.0,'{"loopback:owner":-1.0}',1.0,0,3);
INSERT INTO "run_items" VALUES(2,'f1c14b5be1760490','train',-1.0,'{"loopback:owner":-1.0}',1.0,0,7);
INSERT INTO "run_items" VALUES(2,'fc9ca68a3fc6bf2d','held_out',1.0,'{"loopback:owner":1.0}',1.0,0,6);
CREATE TABLE runs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  scope TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN
    ('running', 'activated', 'refused', 'failed', 'superseded', 'released')),
  parent INTEGER NOT NULL,
  why TEXT NOT NULL, reason TEXT NOT NULL DEFAULT '',
  backend TEXT NOT NULL, settings TEXT NOT NULL,
  metrics TEXT NOT NULL DEFAULT '{}',
  last_event_seq INTEGER NOT NULL,
  started_at REAL NOT NULL, finished_at REAL
, progress TEXT NOT NULL DEFAULT '{}', model TEXT NOT NULL DEFAULT '', replay INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO "runs" VALUES(1,'default','activated',0,'asked for by loopback:owner','better','fake','{"max_sequence_tokens":4096,"note":"","reward":"binary","seed":0,"tokens_per_forward":8192}','{"event":"gate","metrics":{"score":1.0},"passed":true,"reason":"better"}',8,1.79562124735643625257e+09,1.79562124749004483224e+09,'{"memory":0,"starts":1,"step":0,"steps":0}','fake@dd814e9f',0);
INSERT INTO "runs" VALUES(2,'default','activated',1,'asked for by loopback:owner','better','fake','{"max_sequence_tokens":4096,"note":"","reward":"binary","seed":0,"tokens_per_forward":8192}','{"event":"gate","metrics":{"score":1.0},"passed":true,"reason":"better"}',16,1.79562124754689097401e+09,1.79562124782516717913e+09,'{"memory":0,"starts":1,"step":0,"steps":0}','fake@dd814e9f',0);
CREATE TABLE set_aside (
  turn TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
  model TEXT NOT NULL,
  run INTEGER NOT NULL, kind TEXT NOT NULL CHECK (kind IN ('nan', 'oom')),
  reason TEXT NOT NULL, settings TEXT NOT NULL, since REAL NOT NULL,
  PRIMARY KEY (turn, model)
) STRICT, WITHOUT ROWID;
CREATE TABLE shares (person TEXT NOT NULL PRIMARY KEY, since REAL NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE switches (name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE talkers (
  scope TEXT NOT NULL, person TEXT NOT NULL, PRIMARY KEY (scope, person)
) STRICT, WITHOUT ROWID;
INSERT INTO "talkers" VALUES('default','loopback:owner');
CREATE TABLE told (person TEXT NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID;
INSERT INTO "told" VALUES('news run 1 loopback:owner');
INSERT INTO "told" VALUES('news run 2 loopback:owner');
INSERT INTO "told" VALUES('progress default fake@dd814e9f 0 1');
INSERT INTO "told" VALUES('progress default fake@dd814e9f 0 2');
INSERT INTO "told" VALUES('progress default fake@dd814e9f 0 4');
INSERT INTO "told" VALUES('progress default fake@dd814e9f 0 6');
INSERT INTO "told" VALUES('progress default fake@dd814e9f 1 2');
INSERT INTO "told" VALUES('progress default fake@dd814e9f 1 4');
INSERT INTO "told" VALUES('progress default fake@dd814e9f 1 6');
INSERT INTO "told" VALUES('progress default fake@dd814e9f 2 4');
INSERT INTO "told" VALUES('progress default fake@dd814e9f 2 6');
CREATE TABLE traces (
  seq INTEGER PRIMARY KEY,
  trace TEXT NOT NULL,
  connector TEXT NOT NULL, account TEXT NOT NULL, channel TEXT NOT NULL, talker TEXT NOT NULL,
  turn TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
  answer TEXT NOT NULL
) STRICT;
CREATE TABLE turns (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  connector TEXT NOT NULL, account TEXT NOT NULL, channel TEXT NOT NULL,
  channel_kind TEXT NOT NULL, thread TEXT NOT NULL,
  talker TEXT NOT NULL,
  messages TEXT NOT NULL, response TEXT NOT NULL,
  prompt_tokens BLOB NOT NULL, tokens BLOB NOT NULL, logprobs BLOB NOT NULL,
  temperature REAL NOT NULL, model TEXT NOT NULL, version INTEGER NOT NULL,
  scope TEXT NOT NULL, kind TEXT NOT NULL, origin TEXT NOT NULL,
  trainable INTEGER NOT NULL,
  created_at REAL NOT NULL,
  -- Derived, kept by the triggers below, so that what may be claimed is counted without a scan:
  rated INTEGER NOT NULL DEFAULT 0, -- it has a label
  spent INTEGER                     -- the run that trains or has trained on it
, context TEXT NOT NULL DEFAULT '[]', answered_by TEXT NOT NULL DEFAULT '') STRICT;
INSERT INTO "turns" VALUES(1,'1ec97ee1b1683624','loopback','loopback','owner','private','','owner','[{"content":"question 0","role":"user"}]','v0 says: question 0',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake@dd814e9f',0,'default','main','goodbot',1,1.79562124700602936738e+09,1,2,'[]','');
INSERT INTO "turns" VALUES(2,'24be6f9bda6ca80f','loopback','loopback','owner','private','','owner','[{"content":"question 1","role":"user"}]','v0 says: question 1',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake@dd814e9f',0,'default','main','goodbot',1,1.79562124701140785219e+09,1,1,'[]','');
INSERT INTO "turns" VALUES(3,'883d244924f18701','loopback','loopback','owner','private','','owner','[{"content":"question 2","role":"user"}]','v0 says: question 2',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake@dd814e9f',0,'default','main','goodbot',1,1.79562124701916790009e+09,1,1,'[]','');
INSERT INTO "turns" VALUES(4,'495f6b00599b3bf7','loopback','loopback','owner','private','','owner','[{"content":"question 3","role":"user"}]','v0 says: question 3',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake@dd814e9f',0,'default','main','goodbot',1,1.79562124707087969778e+09,1,1,'[]','');
INSERT INTO "turns" VALUES(5,'4bf8fa6f11578f4d','loopback','loopback','owner','private','','owner','[{"content":"question 4","role":"user"}]','v0 says: question 4',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake@dd814e9f',0,'default','main','goodbot',1,1.79562124711841869352e+09,1,1,'[]','');
INSERT INTO "turns" VALUES(6,'648d6632f0678f63','loopback','loopback','owner','private','','owner','[{"content":"question 5","role":"user"}]','v0 says: question 5',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake@dd814e9f',0,'default','main','goodbot',1,1.79562124719318652156e+09,1,2,'[]','');
INSERT INTO "turns" VALUES(7,'893aaa4e72bc4fea','loopback','loopback','owner','private','','owner','[{"content":"question 6","role":"user"}]','v0 says: question 6',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake@dd814e9f',0,'default','main','goodbot',1,1.7956212472622153759e+09,1,1,'[]','');
INSERT INTO "turns" VALUES(8,'a64c83f5b07f1187','loopback','loopback','owner','private','','owner','[{"content":"question 7","role":"user"}]','v0 says: question 7',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake@dd814e9f',0,'default','main','goodbot',1,1.79562124729550218584e+09,1,1,'[]','');
INSERT INTO "turns" VALUES(9,'c1bc9c791c8affcc','loopback','loopback','owner','private','','owner','[{"content":"question 8","role":"user"}]','v1 says: question 8',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake@dd814e9f',1,'default','main','goodbot',1,1.79562124750536441803e+09,1,2,'[]','');
INSERT INTO "turns" VALUES(10,'eb1357bbc478aa51','loopback','loopback','owner','private','','owner','[{"content":"question 9","role":"user"}]','v1 says: question 9',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake@dd814e9f',1,'default','main','goodbot',1,1.79562124751076292996e+09,1,2,'[]','');
INSERT INTO "turns" VALUES(11,'df461cf1118305f5','loopback','loopback','owner','private','','owner','[{"content":"question 10","role":"user"}]','v1 says: question 10',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake@dd814e9f',1,'default','main','goodbot',1,1.79562124752149581902e+09,1,NULL,'[]','');
INSERT INTO "turns" VALUES(12,'bdf16024c80b521f','loopback','loopback','owner','private','','owner','[{"content":"question 11","role":"user"}]','v1 says: question 11',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake@dd814e9f',1,'default','main','goodbot',1,1.79562124752687096596e+09,1,2,'[]','');
INSERT INTO "turns" VALUES(13,'fc9ca68a3fc6bf2d','loopback','loopback','owner','private','','owner','[{"content":"question 12","role":"user"}]','v1 says: question 12',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake@dd814e9f',1,'default','main','goodbot',1,1.79562124753040862085e+09,1,NULL,'[]','');
INSERT INTO "turns" VALUES(14,'f1c14b5be1760490','loopback','loopback','owner','private','','owner','[{"content":"question 13","role":"user"}]','v1 says: question 13',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake@dd814e9f',1,'default','main','goodbot',1,1.79562124753364181516e+09,1,2,'[]','');
INSERT INTO "turns" VALUES(15,'7a802fdbd36fc5dd','loopback','loopback','owner','private','','owner','[{"content":"question 14","role":"user"}]','v1 says: question 14',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake@dd814e9f',1,'default','main','goodbot',1,1.79562124753703737257e+09,1,2,'[]','');
INSERT INTO "turns" VALUES(16,'6bc2ffc43a498862','loopback','loopback','owner','private','','owner','[{"content":"question 15","role":"user"}]','v1 says: question 15',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake@dd814e9f',1,'default','main','goodbot',1,1.79562124754024648662e+09,1,NULL,'[]','');
INSERT INTO "turns" VALUES(17,'672049aa94205725','loopback','loopback','owner','private','','owner','[{"content":"question 16","role":"user"}]','v2 says: question 16',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake@dd814e9f',2,'default','main','goodbot',1,1.79562124783672451971e+09,1,NULL,'[]','');
INSERT INTO "turns" VALUES(18,'516395e86e66745a','loopback','loopback','owner','private','','owner','[{"content":"question 17","role":"user"}]','v2 says: question 17',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake@dd814e9f',2,'default','main','goodbot',1,1.79562124784043407443e+09,1,NULL,'[]','');
INSERT INTO "turns" VALUES(19,'24777f7f8054ec41','loopback','loopback','owner','private','','owner','[{"content":"question 18","role":"user"}]','v2 says: question 18',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake@dd814e9f',2,'default','main','goodbot',1,1.79562124784387087822e+09,1,NULL,'[]','');
INSERT INTO "turns" VALUES(20,'fabac83ddc6007e5','loopback','loopback','owner','private','','owner','[{"content":"question 19","role":"user"}]','v2 says: question 19',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake@dd814e9f',2,'default','main','goodbot',1,1.7956212478475658894e+09,2,NULL,'[]','');
INSERT INTO "turns" VALUES(21,'95bb1b180e6dc689','loopback','loopback','owner','private','','owner','[{"content":"question 20","role":"user"}]','v2 says: question 20',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake@dd814e9f',2,'default','main','goodbot',1,1.79562124785100388525e+09,1,NULL,'[]','');
INSERT INTO "turns" VALUES(22,'a09c34044fe54146','loopback','loopback','owner','private','','owner','[{"content":"a tie","role":"user"}]','v2 says: a tie',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake@dd814e9f',2,'default','main','goodbot',1,1.79562124785437297828e+09,2,NULL,'[]','');
INSERT INTO "turns" VALUES(23,'8e69b093aab1c390','loopback','loopback','owner','private','','owner','[{"content":"three stars","role":"user"}]','v2 says: three stars',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake@dd814e9f',2,'default','main','goodbot',1,1.79562124785837054245e+09,0,NULL,'[]','');
CREATE INDEX events_by_turn ON events (turn, rater);
CREATE INDEX events_unresolved ON events (connector, account, channel, message) WHERE turn IS NULL;
CREATE INDEX inbox_open ON inbox (received_at) WHERE payload <> '';
CREATE INDEX inbox_done ON inbox (received_at) WHERE payload = '';
CREATE INDEX turns_spent ON turns (spent) WHERE spent IS NOT NULL;
CREATE INDEX turns_by_place ON turns (connector, account, channel, thread, seq);
CREATE INDEX turns_by_age ON turns (created_at);
CREATE INDEX messages_by_turn ON messages (turn);
CREATE UNIQUE INDEX runs_single_flight ON runs (scope) WHERE state = 'running';
CREATE INDEX run_items_by_turn ON run_items (turn);
CREATE TRIGGER turn_answered AFTER INSERT ON turns BEGIN
  INSERT OR IGNORE INTO talkers VALUES (NEW.scope, NEW.connector || ':' || NEW.talker);
END;
CREATE TRIGGER run_let_go AFTER UPDATE OF state ON runs
WHEN NEW.state IN ('failed', 'superseded', 'released') BEGIN
  UPDATE turns SET spent = NULL WHERE spent = NEW.id;
END;
CREATE INDEX links_by_identity ON links (identity);
CREATE INDEX retries_by_earlier ON retries (instead_of);
CREATE INDEX audit_by_actor ON audit (actor, action, at);
CREATE INDEX turns_by_talker ON turns (connector, talker);
CREATE INDEX events_by_rater ON events (rater);
CREATE INDEX labels_by_rater ON labels (rater, event_seq, value);
CREATE INDEX runs_replayed ON runs (scope, model) WHERE replay = 1;
CREATE TRIGGER turn_claimed AFTER INSERT ON run_items
WHEN NEW.split = 'train' AND NOT NEW.replayed BEGIN
  UPDATE turns SET spent = NEW.run
    WHERE id = NEW.turn AND model = (SELECT model FROM runs WHERE id = NEW.run);
END;
CREATE TRIGGER label_added AFTER INSERT ON labels BEGIN
  UPDATE turns SET rated = now.rated FROM
    (SELECT iif(sum((value > 0) - (value < 0)) = 0, 2, 1) AS rated FROM labels WHERE turn = NEW.turn) AS now
    WHERE turns.id = NEW.turn AND turns.rated <> now.rated;
END;
CREATE TRIGGER label_removed AFTER DELETE ON labels BEGIN
  UPDATE turns SET rated = now.rated FROM
    (SELECT iif(count(*) = 0, 0, iif(sum((value > 0) - (value < 0)) = 0, 2, 1)) AS rated
       FROM labels WHERE turn = OLD.turn) AS now
    WHERE turns.id = OLD.turn AND turns.rated <> now.rated;
END;
CREATE UNIQUE INDEX comparisons_open ON comparisons (scope, model)
  WHERE state IN ('preparing', 'asking');
CREATE INDEX pairs_by_turn ON pairs (turn);
CREATE UNIQUE INDEX canaries_running ON canaries (scope, model) WHERE state = 'running';
CREATE INDEX turns_claimable ON turns
  (scope, model, channel_kind, connector || ':' || talker, rated, trainable, answered_by, spent)
  WHERE rated > 0 AND spent IS NULL;
CREATE INDEX turns_unrated ON turns (created_at) WHERE rated = 0;
CREATE INDEX traces_by_trace ON traces (trace);
CREATE INDEX traces_by_turn ON traces (turn);
CREATE INDEX traces_by_talker ON traces (connector, talker);
CREATE TRIGGER trace_answered AFTER INSERT ON traces BEGIN
  INSERT OR IGNORE INTO talkers
    SELECT scope, NEW.connector || ':' || NEW.talker FROM turns WHERE id = NEW.turn;
END;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('audit',3);
INSERT INTO "sqlite_sequence" VALUES('turns',23);
INSERT INTO "sqlite_sequence" VALUES('events',26);
INSERT INTO "sqlite_sequence" VALUES('runs',2);
INSERT INTO "sqlite_sequence" VALUES('adapters',2);
COMMIT;
