-- What was wrong with a rejected event, if it is more than its code says.
ALTER TABLE rejections ADD COLUMN message text;
