-- Which of these tasks are cancelled, whoever has done that.
SELECT id FROM `{table}_history` WHERE id IN ({ids}) AND state = 'cancelled'
