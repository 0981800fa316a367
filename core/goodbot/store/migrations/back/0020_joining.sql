-- Back to remembering in memory alone who has asked to talk to the bot.
DROP TABLE join_requests;
