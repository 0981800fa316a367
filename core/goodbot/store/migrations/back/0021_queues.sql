-- Back to an inbox that everybody goes through by themselves.
DROP TABLE queue_shares;
DROP TABLE queue_answers;
DROP TABLE queues;
