-- Back to answers that all ask.
DROP TABLE rating_requests;
