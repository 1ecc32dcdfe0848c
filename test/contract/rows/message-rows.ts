/** Rule -> test for batches, message status, the message log and calling back. */
import { inFile, type Row } from '../row.js'

const batch = inFile('msa/rest/batch')
const schedule = inFile('msa/schedule')
const group = inFile('msa/schedule-group')
const recipients = inFile('msa/rest/send-recipients')
const simulator = inFile('msa/simulator')
const bounces = inFile('deliverability/bounces-served')

const OUTCOMES = simulator('each address plays what it is named after')
const resend = inFile('msa/rest/resend')
const RESEND = 'POST /api/v1/email/{messageId}/resend'
const CANCEL = 'DELETE /api/v1/email/{messageId}'
const DEFERRED = bounces('a deferred message reads as sent, with its next attempt, until it is delivered')

export const MESSAGE_ROWS: readonly Row[] = [
  {
    rule: 'POST /email/:id/resend sends a stored message again, to the same or another address (additive)',
    from: [],
    answers: [`${RESEND}: conflict`, `${RESEND}: domain_invalid`, `${RESEND}: limit_reached`],
    tests: [
      resend('a message is sent again as a new one, attachments and header fields included'),
      resend('another address gets it too'),
      resend('what cannot be sent again is refused with the reason, and nothing is sent'),
      resend('a domain that may no longer send is refused'),
      resend('a copy counts against the limits of its workspace'),
    ],
  },
  {
    rule: 'POST /email/batch takes 1 to 1,000 messages, each to one recipient: 202 with batch_id, status and counts',
    from: [
      'Email > POST /email/batch',
      'What the service does > Batch email up to 1000',
      'Batch record > batch_id',
      'Batch record > status',
      'Batch record > total, sent, failed',
    ],
    tests: [
      batch('each message of a batch is mailed to its own recipient with its own content'),
      batch('a batch of a thousand is accepted and mailed'),
    ],
  },
  {
    rule: 'a message has the fields and bounds of a single send, but one recipient and no send_at',
    from: ['Email > POST /email/batch'],
    tests: [
      batch('a message of a batch has the bounds of a single send'),
      batch('a fault of form in any message refuses the whole batch and names it'),
    ],
  },
  {
    rule: 'a fault of form anywhere is a 400 with its path, and nothing is accepted',
    from: ['decisions: Email > Batch schema error anywhere ->'],
    tests: [batch('a fault of form in any message refuses the whole batch and names it')],
  },
  {
    rule: 'what the rules of sending refuse fails that message alone and stands in errors',
    from: ['decisions: Email > Batch schema error anywhere ->'],
    tests: [batch('what the rules of sending refuse fails one message alone')],
  },
  {
    rule: 'cc and bcc of a batch have a bound in all, and one that is no address fails its message',
    from: ['decisions: Email > cc bcc attachments [{filename content'],
    tests: [
      batch('a copy to what is no address fails its message, and is not left out silently'),
      batch('the copies of all messages of a batch have a bound'),
    ],
  },
  {
    rule: 'processing until the last message is released, then completed; failed where none was accepted',
    from: ['States and transitions > Batch statuses processing completed failed'],
    tests: [
      batch('messages are released at the email rate of the key, those of two batches one after the other'),
      batch('what the rules of sending refuse fails one message alone'),
    ],
  },
  {
    rule: 'GET /email/batch/:batchId adds created_at, completed_at, skipped and results, in pages',
    from: ['Email > GET /email/batch/:batchId', 'Batch record > created_at, completed_at'],
    tests: [
      batch('each message of a batch is mailed to its own recipient with its own content'),
      batch('results are paged'),
      batch('a batch is for its own workspace, and for keys that may'),
    ],
  },
  {
    rule: "a batch is never refused for the key's email rate; its messages are released at it",
    from: ['decisions: Accounts and keys > Each key has rate_limit (requests/min'],
    tests: [
      batch('messages are released at the email rate of the key, those of two batches one after the other'),
    ],
  },
  {
    rule: 'a batch that would cross the hourly or daily limit is refused whole',
    from: ['Errors > limit_reached'],
    answers: ['POST /api/v1/email/batch: limit_reached'],
    tests: [batch('a batch that would cross a limit of the workspace is refused whole')],
  },
  {
    rule: 'a status has message_id, status, to and a moment or null for each event',
    from: [
      'Email > GET /email/:messageId/status',
      'What the service does > Delivery status lookup per message',
      'Message status record > message_id',
      'Message status record > to',
      'Message status record > sent_at, delivered_at, opened_at, clicked_at, bounced_at',
    ],
    tests: [recipients("a message's status and trace are for its own workspace"), OUTCOMES],
  },
  {
    rule: 'sent, delivered, opened, clicked, bounced; the highest wins, a click sets opened_at, bounced replaces sent',
    from: [
      'Message status record > status',
      'Message status record > bounce_type',
      'States and transitions > Message statuses sent delivered bounced',
      'decisions: Email > Message status machine scheduled ->',
    ],
    tests: [OUTCOMES, bounces("a rejection bounces the message and records the server's reply"), DEFERRED],
  },
  {
    rule: 'who was skipped reads suppressed or failed, with the reason',
    from: ['decisions: Email > Message status machine scheduled ->'],
    tests: [recipients('suppressed, invalid and repeated recipients are skipped and do not fail the others')],
  },
  {
    rule: 'the id of a scheduled send stands for all its recipients',
    from: [
      'decisions: Email > Scheduled send one message_id stands',
      'decisions: Email > Scheduled group its status is',
    ],
    tests: [
      schedule('one id stands for all recipients of a scheduled send'),
      schedule('one recipient of several can be called back alone'),
      group('recipients stand in the order of the request, skipped ones with their reason'),
      group('while any recipient waits the group is scheduled, and then what they got to'),
    ],
  },
  {
    rule: 'DELETE /email/:messageId calls a scheduled mail back: it is never sent',
    from: [
      'Email > DELETE /email/:messageId',
      'States and transitions > Scheduled email DELETE /email/:messageId before delivery',
    ],
    tests: [
      schedule('what was called back is never sent'),
      schedule('a mail that is called back the moment it is due is sent or cancelled, never both'),
      group('what is called back is given back to the limits of its hour and day'),
      group('what was counted in an hour that is over is not given to this one'),
    ],
  },
  {
    rule: 'what was sent, was called back before or was never scheduled is a 409 conflict and stays as it is',
    from: [
      'Email > DELETE /email/:messageId',
      'States and transitions > Scheduled email DELETE /email/:messageId already sent',
      'decisions: Email > Scheduled send one message_id stands',
    ],
    answers: [`${CANCEL}: conflict`],
    tests: [
      schedule('a scheduled mail waits for its time and is then sent'),
      schedule('what was called back is never sent'),
      schedule('mail that was never scheduled, unknown mail and that of others cannot be called back'),
    ],
  },
  {
    rule: 'GET /email is the log of messages with filters; GET /email/:messageId has the trace of every attempt',
    from: ['decisions: Email > GET /email (additive) message log'],
    tests: [
      inFile('msa/message-log')(
        'the log shows the messages of the workspace, newest first, and can be asked by field',
      ),
      inFile('msa/message-log')('the log can be asked for a tag, alone and with other fields, in pages'),
      recipients("a message's status and trace are for its own workspace"),
    ],
  },
  {
    rule: 'dates are any ISO 8601 form, without a zone UTC; a date alone as until includes that day; an impossible one is a 400',
    from: ['decisions: Email > Optional fields null is as'],
    tests: [
      inFile('msa/message-log')(
        'the log shows the messages of the workspace, newest first, and can be asked by field',
      ),
      schedule('send_at has to be a moment in the next 72 hours'),
    ],
  },
]
