-- What goodbot 0.1.0 (commit 87e11b0) had written after some chats, two trainings and a rollback.
PRAGMA user_version = 1;
PRAGMA application_id = 1611509767;
BEGIN TRANSACTION;
CREATE TABLE adapters (
  version INTEGER PRIMARY KEY AUTOINCREMENT,
  scope TEXT NOT NULL, parent INTEGER NOT NULL, run INTEGER REFERENCES runs (id),
  directory TEXT NOT NULL UNIQUE, sha256 TEXT NOT NULL, model TEXT NOT NULL,
  tainted TEXT NOT NULL DEFAULT '',
  baseline TEXT NOT NULL, metrics TEXT NOT NULL,
  created_at REAL NOT NULL
) STRICT;
INSERT INTO "adapters" VALUES(1,'default',0,1,'v000001-a61623c2460c4f0f','f73f5d286b70e7fb321887373cac2cb7b8b107f881a68ced8a56ae4834c319f9','fake','','{"mean":0.25,"weight":1.0}','{"gate":{"score":1.0},"loss":0.1}',1795200034.0);
INSERT INTO "adapters" VALUES(2,'default',1,2,'v000002-cfe6a2b4207a9fe4','1ca2ee06f5d4364f0ae93c47352df26dbe2c7736992cf17cc99a81734e614a41','fake','','{"mean":0.25,"weight":1.0}','{"gate":{"score":1.0},"loss":0.1}',1795200076.0);
CREATE TABLE audit (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  at REAL NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL, detail TEXT NOT NULL,
  hash TEXT NOT NULL
) STRICT;
INSERT INTO "audit" VALUES(1,1795200007.0,'loopback:owner','enable','{"args":"","channel":"#group","done":true}','ff1c821bc697809a74f27f382a0ea55a3d9140b74a1f055001d5dc88c5e81934');
INSERT INTO "audit" VALUES(2,1795200038.0,'loopback:owner','train','{"args":"wait","channel":"owner","done":true}','b6c23f5b5682b0fd2d786a69780aa019fc991a62176117ee25c8c68127a67b6d');
INSERT INTO "audit" VALUES(3,1795200080.0,'loopback:owner','train','{"args":"wait","channel":"owner","done":true}','0eb0abd45fd6bf1a25899d02cc4ee20665b119d4aefeae38495f88f9a688ff80');
INSERT INTO "audit" VALUES(4,1795200100.0,'loopback:owner','rollback','{"args":"1","channel":"owner","done":true}','a2ddbd69131bd22c8e8cad7e0ec0a2ba4354e2a89a26d6a51511d9631ed6fa5d');
INSERT INTO "audit" VALUES(5,1795200102.0,'loopback:owner','pause','{"args":"","channel":"owner","done":true}','f2d56b0b8becbb09d122a22c9232986b1e7f5a11da88762bd1d175f2d010dd00');
CREATE TABLE channels (
  connector TEXT NOT NULL, account TEXT NOT NULL, channel TEXT NOT NULL,
  enabled_by TEXT NOT NULL, enabled_at REAL NOT NULL,
  PRIMARY KEY (connector, account, channel)
) STRICT, WITHOUT ROWID;
INSERT INTO "channels" VALUES('loopback','loopback','#group','loopback:owner',1795200006.0);
CREATE TABLE connector_values (
  connector TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (connector, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE cursors (
  connector TEXT NOT NULL, cursor TEXT NOT NULL, PRIMARY KEY (connector)
) STRICT, WITHOUT ROWID;
INSERT INTO "cursors" VALUES('loopback','58');
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
INSERT INTO "events" VALUES(1,'loopback','loopback','m4','rate','cad14aa773608144','loopback:owner','owner','a3-0','reaction:👍',1.0,'','',4,'',1795200010.0,'{"e":"m4","o":"accepted","t":"cad14aa773608144","x":"Good. 1 of 8 until the next training."}');
INSERT INTO "events" VALUES(2,'loopback','loopback','m6','rate','9cd4354f1117324c','loopback:owner','owner','a5-1','reaction:👎',-1.0,'','',6,'',1795200013.0,'{"e":"m6","o":"accepted","t":"9cd4354f1117324c","x":"Bad. 2 of 8 until the next training."}');
INSERT INTO "events" VALUES(3,'loopback','loopback','m8','rate','2ca29e876622d6d4','loopback:owner','owner','a7-2','reaction:👍',1.0,'','',8,'',1795200016.0,'{"e":"m8","o":"accepted","t":"2ca29e876622d6d4","x":"Good. 3 of 8 until the next training."}');
INSERT INTO "events" VALUES(4,'loopback','loopback','m10','rate','8b563c0fbfcff526','loopback:owner','owner','a9-3','reaction:👎',-1.0,'','',10,'',1795200019.0,'{"e":"m10","o":"accepted","t":"8b563c0fbfcff526","x":"Bad. 4 of 8 until the next training."}');
INSERT INTO "events" VALUES(5,'loopback','loopback','m12','rate','a6efd235c726176d','loopback:owner','owner','a11-4','reaction:👍',1.0,'','',12,'',1795200022.0,'{"e":"m12","o":"accepted","t":"a6efd235c726176d","x":"Good. 5 of 8 until the next training."}');
INSERT INTO "events" VALUES(6,'loopback','loopback','m14','rate','3f080d24464253d6','loopback:owner','owner','a13-5','reaction:👎',-1.0,'','',14,'',1795200025.0,'{"e":"m14","o":"accepted","t":"3f080d24464253d6","x":"Bad. 6 of 8 until the next training."}');
INSERT INTO "events" VALUES(7,'loopback','loopback','m16','rate','0af60ce1a8f150b2','loopback:owner','owner','a15-6','reaction:👍',1.0,'','',16,'',1795200028.0,'{"e":"m16","o":"accepted","t":"0af60ce1a8f150b2","x":"Good. 7 of 8 until the next training."}');
INSERT INTO "events" VALUES(8,'loopback','loopback','m18','rate','50268127b3778953','loopback:owner','owner','a17-7','reaction:👎',-1.0,'','',18,'',1795200031.0,'{"e":"m18","o":"accepted","t":"50268127b3778953","x":"Bad. 8 of 8: the next training can start."}');
INSERT INTO "events" VALUES(9,'loopback','loopback','m21','rate','3f89e483e583b7b2','loopback:rater','rater','a20-8','reaction:👎',-1.0,'','',21,'',1795200041.0,'{"e":"m21","o":"accepted","t":"3f89e483e583b7b2","x":"Bad. 1 of 8 until the next training."}');
INSERT INTO "events" VALUES(10,'loopback','loopback','m23','rate','55eed17c26fd5626','loopback:rater','rater','a22-9','reaction:👍',1.0,'','',23,'',1795200044.0,'{"e":"m23","o":"accepted","t":"55eed17c26fd5626","x":"Good. 2 of 8 until the next training."}');
INSERT INTO "events" VALUES(11,'loopback','loopback','m25','rate','102804631dc9d4cf','loopback:rater','rater','a24-10','reaction:👎',-1.0,'','',25,'',1795200047.0,'{"e":"m25","o":"accepted","t":"102804631dc9d4cf","x":"Bad. 3 of 8 until the next training."}');
INSERT INTO "events" VALUES(12,'loopback','loopback','m27','rate','e4660fc9c2f48c96','loopback:rater','rater','a26-11','reaction:👍',1.0,'','',27,'',1795200050.0,'{"e":"m27","o":"accepted","t":"e4660fc9c2f48c96","x":"Good. 4 of 8 until the next training."}');
INSERT INTO "events" VALUES(13,'loopback','loopback','m29','rate','e6b9e148c0797ae4','loopback:rater','rater','a28-12','reaction:👎',-1.0,'','',29,'',1795200053.0,'{"e":"m29","o":"accepted","t":"e6b9e148c0797ae4","x":"Bad. 5 of 8 until the next training."}');
INSERT INTO "events" VALUES(14,'loopback','loopback','m31','rate','6578888de43a454b','loopback:rater','rater','a30-13','reaction:👍',1.0,'','',31,'',1795200056.0,'{"e":"m31","o":"accepted","t":"6578888de43a454b","x":"Good. 6 of 8 until the next training."}');
INSERT INTO "events" VALUES(15,'loopback','loopback','m33','rate','3841b088c81b9d09','loopback:owner','#group','a32-14','reaction:👎',-1.0,'','',33,'',1795200059.0,'{"e":"m33","o":"accepted","t":"3841b088c81b9d09","x":"Bad. 7 of 8 until the next training."}');
INSERT INTO "events" VALUES(16,'loopback','loopback','m34','rate','3841b088c81b9d09','loopback:rater','#group','a32-14','reaction:👎',-1.0,'','',34,'',1795200060.0,'{"e":"m34","o":"accepted","t":"3841b088c81b9d09","x":"Bad. 7 of 8 until the next training."}');
INSERT INTO "events" VALUES(17,'loopback','loopback','m36','rate','f0e87719c9b2af08','loopback:owner','#group','a35-15','reaction:👍',1.0,'','',36,'',1795200063.0,'{"e":"m36","o":"accepted","t":"f0e87719c9b2af08","x":"Good. 8 of 8: the next training can start."}');
INSERT INTO "events" VALUES(18,'loopback','loopback','m37','rate','f0e87719c9b2af08','loopback:rater','#group','a35-15','reaction:👎',-1.0,'','',37,'',1795200064.0,'{"e":"m37","o":"accepted","t":"f0e87719c9b2af08","x":"Bad. 8 of 8: the next training can start."}');
INSERT INTO "events" VALUES(19,'loopback','loopback','m39','rate','516395e86e66745a','loopback:owner','#group','a38-16','reaction:👎',-1.0,'','',39,'',1795200067.0,'{"e":"m39","o":"accepted","t":"516395e86e66745a","x":"Bad. 8 of 8: the next training can start."}');
INSERT INTO "events" VALUES(20,'loopback','loopback','m40','rate','516395e86e66745a','loopback:rater','#group','a38-16','reaction:👎',-1.0,'','',40,'',1795200068.0,'{"e":"m40","o":"accepted","t":"516395e86e66745a","x":"Bad. 8 of 8: the next training can start."}');
INSERT INTO "events" VALUES(21,'loopback','loopback','m42','rate','ccb7bb2500cb8175','loopback:owner','#group','a41-17','reaction:👍',1.0,'','',42,'',1795200071.0,'{"e":"m42","o":"accepted","t":"ccb7bb2500cb8175","x":"Good. 8 of 8: the next training can start."}');
INSERT INTO "events" VALUES(22,'loopback','loopback','m43','rate','ccb7bb2500cb8175','loopback:rater','#group','a41-17','reaction:👎',-1.0,'','',43,'',1795200072.0,'{"e":"m43","o":"accepted","t":"ccb7bb2500cb8175","x":"Bad. 8 of 8: the next training can start."}');
INSERT INTO "events" VALUES(23,'loopback','loopback','m44','retract','ccb7bb2500cb8175','loopback:rater','#group','a41-17','reaction:👎',NULL,'','',44,'',1795200073.0,'{"e":"m44","o":"accepted","t":"ccb7bb2500cb8175","x":"Taken back. 8 of 8: the next training can start."}');
INSERT INTO "events" VALUES(24,'loopback','loopback','m47','rate','a09c34044fe54146','loopback:owner','owner','a46-18','reaction:👍',1.0,'','',47,'',1795200083.0,'{"e":"m47","o":"accepted","t":"a09c34044fe54146","x":"Good. 3 of 8 until the next training."}');
INSERT INTO "events" VALUES(25,'loopback','loopback','m49','rate','8bdf2a5b52b91c79','loopback:owner','owner','a48-19','reaction:👎',-1.0,'','',49,'',1795200086.0,'{"e":"m49","o":"accepted","t":"8bdf2a5b52b91c79","x":"Bad. 3 of 8 until the next training."}');
INSERT INTO "events" VALUES(26,'loopback','loopback','m51','rate','00348777832f3a5b','loopback:owner','owner','a50-20','reaction:👍',1.0,'','',51,'',1795200089.0,'{"e":"m51","o":"accepted","t":"00348777832f3a5b","x":"Good. 3 of 8 until the next training."}');
INSERT INTO "events" VALUES(27,'loopback','loopback','m53','rate','f37f2606e7fa4fda','loopback:owner','owner','a52-21','reaction:👎',-1.0,'','',53,'',1795200092.0,'{"e":"m53","o":"accepted","t":"f37f2606e7fa4fda","x":"Bad. 3 of 8 until the next training."}');
INSERT INTO "events" VALUES(28,'loopback','loopback','m55','rate','55b8c9d5609e692a','loopback:owner','owner','a54-22','reaction:👍',1.0,'','',55,'',1795200095.0,'{"e":"m55","o":"accepted","t":"55b8c9d5609e692a","x":"Good. 3 of 8 until the next training."}');
CREATE TABLE inbox (
  connector TEXT NOT NULL, account TEXT NOT NULL, event_id TEXT NOT NULL,
  payload TEXT NOT NULL, receipt TEXT NOT NULL, received_at REAL NOT NULL,
  PRIMARY KEY (connector, account, event_id)
) STRICT, WITHOUT ROWID;
INSERT INTO "inbox" VALUES('loopback','loopback','m1','','{"e":"m1","o":"accepted","t":"","x":"Your private chats may train what others talk to."}',1795200003.0);
INSERT INTO "inbox" VALUES('loopback','loopback','m11','','{"e":"m11","o":"accepted","t":"","x":""}',1795200020.0);
INSERT INTO "inbox" VALUES('loopback','loopback','m13','','{"e":"m13","o":"accepted","t":"","x":""}',1795200023.0);
INSERT INTO "inbox" VALUES('loopback','loopback','m15','','{"e":"m15","o":"accepted","t":"","x":""}',1795200026.0);
INSERT INTO "inbox" VALUES('loopback','loopback','m17','','{"e":"m17","o":"accepted","t":"","x":""}',1795200029.0);
INSERT INTO "inbox" VALUES('loopback','loopback','m19','','{"e":"m19","o":"accepted","t":"","x":"v1 answers now: better"}',1795200032.0);
INSERT INTO "inbox" VALUES('loopback','loopback','m2','','{"e":"m2","o":"accepted","t":"","x":"I answer here when I am mentioned or replied to. What is said to me and my answer stay on my owner''s machine; answers that nobody rates are deleted after 7 days. Ratings by the people my owner has named train my local model. Nothing leaves that machine."}',1795200005.0);
INSERT INTO "inbox" VALUES('loopback','loopback','m20','','{"e":"m20","o":"accepted","t":"","x":""}',1795200039.0);
INSERT INTO "inbox" VALUES('loopback','loopback','m22','','{"e":"m22","o":"accepted","t":"","x":""}',1795200042.0);
INSERT INTO "inbox" VALUES('loopback','loopback','m24','','{"e":"m24","o":"accepted","t":"","x":""}',1795200045.0);
INSERT INTO "inbox" VALUES('loopback','loopback','m26','','{"e":"m26","o":"accepted","t":"","x":""}',1795200048.0);
INSERT INTO "inbox" VALUES('loopback','loopback','m28','','{"e":"m28","o":"accepted","t":"","x":""}',1795200051.0);
INSERT INTO "inbox" VALUES('loopback','loopback','m3','','{"e":"m3","o":"accepted","t":"","x":""}',1795200008.0);
INSERT INTO "inbox" VALUES('loopback','loopback','m30','','{"e":"m30","o":"accepted","t":"","x":""}',1795200054.0);
INSERT INTO "inbox" VALUES('loopback','loopback','m32','','{"e":"m32","o":"accepted","t":"","x":""}',1795200057.0);
INSERT INTO "inbox" VALUES('loopback','loopback','m35','','{"e":"m35","o":"accepted","t":"","x":""}',1795200061.0);
INSERT INTO "inbox" VALUES('loopback','loopback','m38','','{"e":"m38","o":"accepted","t":"","x":""}',1795200065.0);
INSERT INTO "inbox" VALUES('loopback','loopback','m41','','{"e":"m41","o":"accepted","t":"","x":""}',1795200069.0);
INSERT INTO "inbox" VALUES('loopback','loopback','m45','','{"e":"m45","o":"accepted","t":"","x":"v2 answers now: better"}',1795200074.0);
INSERT INTO "inbox" VALUES('loopback','loopback','m46','','{"e":"m46","o":"accepted","t":"","x":""}',1795200081.0);
INSERT INTO "inbox" VALUES('loopback','loopback','m48','','{"e":"m48","o":"accepted","t":"","x":""}',1795200084.0);
INSERT INTO "inbox" VALUES('loopback','loopback','m5','','{"e":"m5","o":"accepted","t":"","x":""}',1795200011.0);
INSERT INTO "inbox" VALUES('loopback','loopback','m50','','{"e":"m50","o":"accepted","t":"","x":""}',1795200087.0);
INSERT INTO "inbox" VALUES('loopback','loopback','m52','','{"e":"m52","o":"accepted","t":"","x":""}',1795200090.0);
INSERT INTO "inbox" VALUES('loopback','loopback','m54','','{"e":"m54","o":"accepted","t":"","x":""}',1795200093.0);
INSERT INTO "inbox" VALUES('loopback','loopback','m56','','{"e":"m56","o":"accepted","t":"","x":""}',1795200096.0);
INSERT INTO "inbox" VALUES('loopback','loopback','m57','','{"e":"m57","o":"accepted","t":"","x":"v1 answers now. The ratings behind what was rolled back stay used."}',1795200098.0);
INSERT INTO "inbox" VALUES('loopback','loopback','m58','','{"e":"m58","o":"accepted","t":"","x":"Training is paused; ratings are still taken. `resume` lets it go on."}',1795200101.0);
INSERT INTO "inbox" VALUES('loopback','loopback','m7','','{"e":"m7","o":"accepted","t":"","x":""}',1795200014.0);
INSERT INTO "inbox" VALUES('loopback','loopback','m9','','{"e":"m9","o":"accepted","t":"","x":""}',1795200017.0);
CREATE TABLE labels (
  turn TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
  rater TEXT NOT NULL,
  value REAL NOT NULL, event_id TEXT NOT NULL, event_seq INTEGER NOT NULL,
  PRIMARY KEY (turn, rater)
) STRICT, WITHOUT ROWID;
INSERT INTO "labels" VALUES('00348777832f3a5b','loopback:owner',1.0,'m51',26);
INSERT INTO "labels" VALUES('0af60ce1a8f150b2','loopback:owner',1.0,'m16',7);
INSERT INTO "labels" VALUES('102804631dc9d4cf','loopback:rater',-1.0,'m25',11);
INSERT INTO "labels" VALUES('2ca29e876622d6d4','loopback:owner',1.0,'m8',3);
INSERT INTO "labels" VALUES('3841b088c81b9d09','loopback:owner',-1.0,'m33',15);
INSERT INTO "labels" VALUES('3841b088c81b9d09','loopback:rater',-1.0,'m34',16);
INSERT INTO "labels" VALUES('3f080d24464253d6','loopback:owner',-1.0,'m14',6);
INSERT INTO "labels" VALUES('3f89e483e583b7b2','loopback:rater',-1.0,'m21',9);
INSERT INTO "labels" VALUES('50268127b3778953','loopback:owner',-1.0,'m18',8);
INSERT INTO "labels" VALUES('516395e86e66745a','loopback:owner',-1.0,'m39',19);
INSERT INTO "labels" VALUES('516395e86e66745a','loopback:rater',-1.0,'m40',20);
INSERT INTO "labels" VALUES('55b8c9d5609e692a','loopback:owner',1.0,'m55',28);
INSERT INTO "labels" VALUES('55eed17c26fd5626','loopback:rater',1.0,'m23',10);
INSERT INTO "labels" VALUES('6578888de43a454b','loopback:rater',1.0,'m31',14);
INSERT INTO "labels" VALUES('8b563c0fbfcff526','loopback:owner',-1.0,'m10',4);
INSERT INTO "labels" VALUES('8bdf2a5b52b91c79','loopback:owner',-1.0,'m49',25);
INSERT INTO "labels" VALUES('9cd4354f1117324c','loopback:owner',-1.0,'m6',2);
INSERT INTO "labels" VALUES('a09c34044fe54146','loopback:owner',1.0,'m47',24);
INSERT INTO "labels" VALUES('a6efd235c726176d','loopback:owner',1.0,'m12',5);
INSERT INTO "labels" VALUES('cad14aa773608144','loopback:owner',1.0,'m4',1);
INSERT INTO "labels" VALUES('ccb7bb2500cb8175','loopback:owner',1.0,'m42',21);
INSERT INTO "labels" VALUES('e4660fc9c2f48c96','loopback:rater',1.0,'m27',12);
INSERT INTO "labels" VALUES('e6b9e148c0797ae4','loopback:rater',-1.0,'m29',13);
INSERT INTO "labels" VALUES('f0e87719c9b2af08','loopback:owner',1.0,'m36',17);
INSERT INTO "labels" VALUES('f0e87719c9b2af08','loopback:rater',-1.0,'m37',18);
INSERT INTO "labels" VALUES('f37f2606e7fa4fda','loopback:owner',-1.0,'m53',27);
CREATE TABLE messages (
  connector TEXT NOT NULL, account TEXT NOT NULL, channel TEXT NOT NULL, message TEXT NOT NULL,
  turn TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
  PRIMARY KEY (connector, account, channel, message)
) STRICT, WITHOUT ROWID;
INSERT INTO "messages" VALUES('loopback','loopback','owner','a50-20','00348777832f3a5b');
INSERT INTO "messages" VALUES('loopback','loopback','owner','a15-6','0af60ce1a8f150b2');
INSERT INTO "messages" VALUES('loopback','loopback','rater','a24-10','102804631dc9d4cf');
INSERT INTO "messages" VALUES('loopback','loopback','owner','a7-2','2ca29e876622d6d4');
INSERT INTO "messages" VALUES('loopback','loopback','#group','a32-14','3841b088c81b9d09');
INSERT INTO "messages" VALUES('loopback','loopback','owner','a13-5','3f080d24464253d6');
INSERT INTO "messages" VALUES('loopback','loopback','rater','a20-8','3f89e483e583b7b2');
INSERT INTO "messages" VALUES('loopback','loopback','owner','a17-7','50268127b3778953');
INSERT INTO "messages" VALUES('loopback','loopback','#group','a38-16','516395e86e66745a');
INSERT INTO "messages" VALUES('loopback','loopback','owner','a54-22','55b8c9d5609e692a');
INSERT INTO "messages" VALUES('loopback','loopback','rater','a22-9','55eed17c26fd5626');
INSERT INTO "messages" VALUES('loopback','loopback','rater','a30-13','6578888de43a454b');
INSERT INTO "messages" VALUES('loopback','loopback','owner','a9-3','8b563c0fbfcff526');
INSERT INTO "messages" VALUES('loopback','loopback','owner','a48-19','8bdf2a5b52b91c79');
INSERT INTO "messages" VALUES('loopback','loopback','talker','a56-23','900c859037d0ff60');
INSERT INTO "messages" VALUES('loopback','loopback','owner','a5-1','9cd4354f1117324c');
INSERT INTO "messages" VALUES('loopback','loopback','owner','a46-18','a09c34044fe54146');
INSERT INTO "messages" VALUES('loopback','loopback','owner','a11-4','a6efd235c726176d');
INSERT INTO "messages" VALUES('loopback','loopback','owner','a3-0','cad14aa773608144');
INSERT INTO "messages" VALUES('loopback','loopback','#group','a41-17','ccb7bb2500cb8175');
INSERT INTO "messages" VALUES('loopback','loopback','rater','a26-11','e4660fc9c2f48c96');
INSERT INTO "messages" VALUES('loopback','loopback','rater','a28-12','e6b9e148c0797ae4');
INSERT INTO "messages" VALUES('loopback','loopback','#group','a35-15','f0e87719c9b2af08');
INSERT INTO "messages" VALUES('loopback','loopback','owner','a52-21','f37f2606e7fa4fda');
CREATE TABLE pointers (
  scope TEXT NOT NULL PRIMARY KEY, version INTEGER NOT NULL, updated_at REAL NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "pointers" VALUES('default',1,1795200099.0);
CREATE TABLE run_items (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  turn TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
  split TEXT NOT NULL CHECK (split IN ('train', 'held_out')),
  reward REAL NOT NULL, labels TEXT NOT NULL,
  PRIMARY KEY (run, turn)
) STRICT, WITHOUT ROWID;
INSERT INTO "run_items" VALUES(1,'0af60ce1a8f150b2','train',1.0,'{"loopback:owner":1.0}');
INSERT INTO "run_items" VALUES(1,'2ca29e876622d6d4','train',1.0,'{"loopback:owner":1.0}');
INSERT INTO "run_items" VALUES(1,'3f080d24464253d6','held_out',-1.0,'{"loopback:owner":-1.0}');
INSERT INTO "run_items" VALUES(1,'50268127b3778953','train',-1.0,'{"loopback:owner":-1.0}');
INSERT INTO "run_items" VALUES(1,'8b563c0fbfcff526','train',-1.0,'{"loopback:owner":-1.0}');
INSERT INTO "run_items" VALUES(1,'9cd4354f1117324c','train',-1.0,'{"loopback:owner":-1.0}');
INSERT INTO "run_items" VALUES(1,'a6efd235c726176d','train',1.0,'{"loopback:owner":1.0}');
INSERT INTO "run_items" VALUES(1,'cad14aa773608144','held_out',1.0,'{"loopback:owner":1.0}');
INSERT INTO "run_items" VALUES(2,'102804631dc9d4cf','train',-1.0,'{"loopback:rater":-1.0}');
INSERT INTO "run_items" VALUES(2,'3841b088c81b9d09','train',-1.0,'{"loopback:owner":-1.0,"loopback:rater":-1.0}');
INSERT INTO "run_items" VALUES(2,'3f89e483e583b7b2','train',-1.0,'{"loopback:rater":-1.0}');
INSERT INTO "run_items" VALUES(2,'516395e86e66745a','train',-1.0,'{"loopback:owner":-1.0,"loopback:rater":-1.0}');
INSERT INTO "run_items" VALUES(2,'55eed17c26fd5626','train',1.0,'{"loopback:rater":1.0}');
INSERT INTO "run_items" VALUES(2,'6578888de43a454b','held_out',1.0,'{"loopback:rater":1.0}');
INSERT INTO "run_items" VALUES(2,'ccb7bb2500cb8175','train',1.0,'{"loopback:owner":1.0}');
INSERT INTO "run_items" VALUES(2,'e4660fc9c2f48c96','train',1.0,'{"loopback:rater":1.0}');
INSERT INTO "run_items" VALUES(2,'e6b9e148c0797ae4','held_out',-1.0,'{"loopback:rater":-1.0}');
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
) STRICT;
INSERT INTO "runs" VALUES(1,'default','activated',0,'asked for by loopback:owner','better','fake','{"note":"","reward":"binary","seed":0}','{"event":"gate","metrics":{"score":1.0},"passed":true,"reason":"better"}',8,1795200033.0,1795200036.0);
INSERT INTO "runs" VALUES(2,'default','activated',1,'asked for by loopback:owner','better','fake','{"note":"","reward":"binary","seed":0}','{"event":"gate","metrics":{"score":1.0},"passed":true,"reason":"better"}',23,1795200075.0,1795200078.0);
CREATE TABLE shares (person TEXT NOT NULL PRIMARY KEY, since REAL NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO "shares" VALUES('loopback:rater',1795200004.0);
CREATE TABLE switches (name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO "switches" VALUES('paused','1');
CREATE TABLE talkers (
  scope TEXT NOT NULL, person TEXT NOT NULL, PRIMARY KEY (scope, person)
) STRICT, WITHOUT ROWID;
INSERT INTO "talkers" VALUES('default','loopback:owner');
INSERT INTO "talkers" VALUES('default','loopback:rater');
INSERT INTO "talkers" VALUES('default','loopback:talker');
CREATE TABLE told (person TEXT NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID;
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
) STRICT;
INSERT INTO "turns" VALUES(1,'cad14aa773608144','loopback','loopback','owner','private','','owner','[{"content":"question 0","role":"user"}]','v0 says: question 0',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake',0,'default','main','goodbot',1,1795200009.0,1,NULL);
INSERT INTO "turns" VALUES(2,'9cd4354f1117324c','loopback','loopback','owner','private','','owner','[{"content":"question 1","role":"user"}]','v0 says: question 1',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake',0,'default','main','goodbot',1,1795200012.0,1,1);
INSERT INTO "turns" VALUES(3,'2ca29e876622d6d4','loopback','loopback','owner','private','','owner','[{"content":"question 2","role":"user"}]','v0 says: question 2',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake',0,'default','main','goodbot',1,1795200015.0,1,1);
INSERT INTO "turns" VALUES(4,'8b563c0fbfcff526','loopback','loopback','owner','private','','owner','[{"content":"question 3","role":"user"}]','v0 says: question 3',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake',0,'default','main','goodbot',1,1795200018.0,1,1);
INSERT INTO "turns" VALUES(5,'a6efd235c726176d','loopback','loopback','owner','private','','owner','[{"content":"question 4","role":"user"}]','v0 says: question 4',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake',0,'default','main','goodbot',1,1795200021.0,1,1);
INSERT INTO "turns" VALUES(6,'3f080d24464253d6','loopback','loopback','owner','private','','owner','[{"content":"question 5","role":"user"}]','v0 says: question 5',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake',0,'default','main','goodbot',1,1795200024.0,1,NULL);
INSERT INTO "turns" VALUES(7,'0af60ce1a8f150b2','loopback','loopback','owner','private','','owner','[{"content":"question 6","role":"user"}]','v0 says: question 6',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake',0,'default','main','goodbot',1,1795200027.0,1,1);
INSERT INTO "turns" VALUES(8,'50268127b3778953','loopback','loopback','owner','private','','owner','[{"content":"question 7","role":"user"}]','v0 says: question 7',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake',0,'default','main','goodbot',1,1795200030.0,1,1);
INSERT INTO "turns" VALUES(9,'3f89e483e583b7b2','loopback','loopback','rater','private','','rater','[{"content":"the rater''s question 0","role":"user"}]','v1 says: the rater''s question 0',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake',1,'default','main','goodbot',1,1795200040.0,1,2);
INSERT INTO "turns" VALUES(10,'55eed17c26fd5626','loopback','loopback','rater','private','','rater','[{"content":"the rater''s question 1","role":"user"}]','v1 says: the rater''s question 1',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake',1,'default','main','goodbot',1,1795200043.0,1,2);
INSERT INTO "turns" VALUES(11,'102804631dc9d4cf','loopback','loopback','rater','private','','rater','[{"content":"the rater''s question 2","role":"user"}]','v1 says: the rater''s question 2',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake',1,'default','main','goodbot',1,1795200046.0,1,2);
INSERT INTO "turns" VALUES(12,'e4660fc9c2f48c96','loopback','loopback','rater','private','','rater','[{"content":"the rater''s question 3","role":"user"}]','v1 says: the rater''s question 3',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake',1,'default','main','goodbot',1,1795200049.0,1,2);
INSERT INTO "turns" VALUES(13,'e6b9e148c0797ae4','loopback','loopback','rater','private','','rater','[{"content":"the rater''s question 4","role":"user"}]','v1 says: the rater''s question 4',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake',1,'default','main','goodbot',1,1795200052.0,1,NULL);
INSERT INTO "turns" VALUES(14,'6578888de43a454b','loopback','loopback','rater','private','','rater','[{"content":"the rater''s question 5","role":"user"}]','v1 says: the rater''s question 5',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake',1,'default','main','goodbot',1,1795200055.0,1,NULL);
INSERT INTO "turns" VALUES(15,'3841b088c81b9d09','loopback','loopback','#group','shared','','talker','[{"content":"what of 0 in the group?","role":"user"}]','v1 says: what of 0 in the group?',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake',1,'default','main','goodbot',1,1795200058.0,1,2);
INSERT INTO "turns" VALUES(16,'f0e87719c9b2af08','loopback','loopback','#group','shared','','talker','[{"content":"what of 1 in the group?","role":"user"}]','v1 says: what of 1 in the group?',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake',1,'default','main','goodbot',1,1795200062.0,1,NULL);
INSERT INTO "turns" VALUES(17,'516395e86e66745a','loopback','loopback','#group','shared','','talker','[{"content":"what of 2 in the group?","role":"user"}]','v1 says: what of 2 in the group?',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake',1,'default','main','goodbot',1,1795200066.0,1,2);
INSERT INTO "turns" VALUES(18,'ccb7bb2500cb8175','loopback','loopback','#group','shared','','talker','[{"content":"what of 3 in the group?","role":"user"}]','v1 says: what of 3 in the group?',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake',1,'default','main','goodbot',1,1795200070.0,1,2);
INSERT INTO "turns" VALUES(19,'a09c34044fe54146','loopback','loopback','owner','private','','owner','[{"content":"question 8","role":"user"}]','v2 says: question 8',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake',2,'default','main','goodbot',1,1795200082.0,1,NULL);
INSERT INTO "turns" VALUES(20,'8bdf2a5b52b91c79','loopback','loopback','owner','private','','owner','[{"content":"question 9","role":"user"}]','v2 says: question 9',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake',2,'default','main','goodbot',1,1795200085.0,1,NULL);
INSERT INTO "turns" VALUES(21,'00348777832f3a5b','loopback','loopback','owner','private','','owner','[{"content":"question 10","role":"user"}]','v2 says: question 10',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake',2,'default','main','goodbot',1,1795200088.0,1,NULL);
INSERT INTO "turns" VALUES(22,'f37f2606e7fa4fda','loopback','loopback','owner','private','','owner','[{"content":"question 11","role":"user"}]','v2 says: question 11',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake',2,'default','main','goodbot',1,1795200091.0,1,NULL);
INSERT INTO "turns" VALUES(23,'55b8c9d5609e692a','loopback','loopback','owner','private','','owner','[{"content":"question 12","role":"user"}]','v2 says: question 12',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake',2,'default','main','goodbot',1,1795200094.0,1,NULL);
INSERT INTO "turns" VALUES(24,'900c859037d0ff60','loopback','loopback','talker','private','','talker','[{"content":"a question that nobody has rated","role":"user"}]','v2 says: a question that nobody has rated',X'0100000002000000',X'0300000004000000',X'000000BF000080BE',0.7,'fake',2,'default','main','goodbot',1,1795200097.0,0,NULL);
CREATE INDEX events_by_turn ON events (turn, rater);
CREATE INDEX events_unresolved ON events (connector, account, channel, message) WHERE turn IS NULL;
CREATE INDEX inbox_open ON inbox (received_at) WHERE payload <> '';
CREATE INDEX inbox_done ON inbox (received_at) WHERE payload = '';
CREATE INDEX turns_claimable ON turns (scope, model) WHERE rated = 1 AND spent IS NULL;
CREATE INDEX turns_spent ON turns (spent) WHERE spent IS NOT NULL;
CREATE INDEX turns_by_place ON turns (connector, account, channel, thread, seq);
CREATE INDEX turns_by_age ON turns (created_at);
CREATE INDEX messages_by_turn ON messages (turn);
CREATE UNIQUE INDEX runs_single_flight ON runs (scope) WHERE state = 'running';
CREATE INDEX run_items_by_turn ON run_items (turn);
CREATE TRIGGER turn_answered AFTER INSERT ON turns BEGIN
  INSERT OR IGNORE INTO talkers VALUES (NEW.scope, NEW.connector || ':' || NEW.talker);
END;
CREATE TRIGGER label_added AFTER INSERT ON labels BEGIN
  UPDATE turns SET rated = 1 WHERE id = NEW.turn AND rated = 0;
END;
CREATE TRIGGER label_removed AFTER DELETE ON labels BEGIN
  UPDATE turns SET rated = EXISTS (SELECT 1 FROM labels WHERE turn = OLD.turn) WHERE id = OLD.turn;
END;
CREATE TRIGGER turn_claimed AFTER INSERT ON run_items WHEN NEW.split = 'train' BEGIN
  UPDATE turns SET spent = NEW.run WHERE id = NEW.turn;
END;
CREATE TRIGGER run_let_go AFTER UPDATE OF state ON runs
WHEN NEW.state IN ('failed', 'superseded', 'released') BEGIN
  UPDATE turns SET spent = NULL WHERE spent = NEW.id;
END;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('audit',5);
INSERT INTO "sqlite_sequence" VALUES('turns',24);
INSERT INTO "sqlite_sequence" VALUES('events',28);
INSERT INTO "sqlite_sequence" VALUES('runs',2);
INSERT INTO "sqlite_sequence" VALUES('adapters',2);
COMMIT;
