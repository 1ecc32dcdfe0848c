/** Rule -> test for `POST /email/send`. */
import { inFile, type Row } from '../row.js'

const validation = inFile('msa/rest/send-validation')
const limits = inFile('msa/rest/send-limits')
const recipients = inFile('msa/rest/send-recipients')
const sender = inFile('msa/rest/send-sender')
const schedule = inFile('msa/schedule')
const group = inFile('msa/schedule-group')
const parts = inFile('msa/rest/send-parts')
const merged = inFile('msa/rest/merged-mail')
const failures = inFile('msa/rest/send-failures')
const domains = inFile('deliverability/domains-served')
const suppressions = inFile('deliverability/suppressions-served')

const REFUSED = validation('every refused request names its fault and leaves nothing behind')
const AT_BOUND = validation('what is as large as allowed is accepted')
const SEND = 'POST /api/v1/email/send'

export const EMAIL_ROWS: readonly Row[] = [
  {
    rule: 'POST /email/send answers sent, failed, skipped, total and a result for each recipient',
    from: ['Email > POST /email/send', 'What the service does > Transactional email one message to'],
    tests: [
      recipients('suppressed, invalid and repeated recipients are skipped and do not fail the others'),
      validation('what is as large as allowed is accepted'),
    ],
  },
  {
    rule: 'to is one address, or a list of at most 100; required',
    from: ['Email > to'],
    tests: [REFUSED, AT_BOUND, recipients('a single suppressed recipient is no error')],
  },
  {
    rule: 'subject is required, at most 998 characters, without HTML tags, without a line break',
    from: ['Email > subject'],
    tests: [REFUSED, AT_BOUND, validation('tags are stripped from the subject')],
  },
  { rule: 'html has at most 256 KB', from: ['Email > html'], tests: [REFUSED, AT_BOUND] },
  { rule: 'text alone is enough', from: ['Email > text'], tests: [REFUSED, AT_BOUND] },
  {
    rule: 'template_id stands instead of html and text; an unknown one is a 404',
    from: ['Email > template_id'],
    tests: [
      REFUSED,
      merged('a template is sent with its html, and what the request says goes before it'),
      merged('an unknown, deleted or foreign template is refused in the documented order'),
    ],
  },
  {
    rule: 'template_data is an object of any JSON',
    from: ['Email > template_data', 'decisions: Email > html and template_id both given'],
    tests: [
      REFUSED,
      AT_BOUND,
      merged('a template is sent with its html, and what the request says goes before it'),
      merged("each recipient's mail is merged with their contact and the data of the request"),
    ],
  },
  {
    rule: "from_email falls back to the workspace's default, and is Reply-To where the shared address sends",
    from: ['Email > from_email', 'What the service does > Every workspace may send from'],
    tests: [
      sender("the workspace's defaults stand in for what the request leaves out"),
      sender('a domain that was not added sends from the shared address and is answered at its own'),
    ],
  },
  {
    rule: "from_name has at most 100 characters and falls back to the workspace's",
    from: ['Email > from_name'],
    tests: [REFUSED, AT_BOUND, sender("the workspace's defaults stand in for what the request leaves out")],
  },
  {
    rule: 'reply_to is an address, with or without a name',
    from: ['Email > reply_to'],
    tests: [REFUSED, sender('a verified domain sends under its own name')],
  },
  {
    rule: 'track_opens and track_clicks are truth values, true where left out',
    from: ['Email > track_opens', 'Email > track_clicks'],
    tests: [
      REFUSED,
      inFile('msa/rest/batch')('a message of a batch has the bounds of a single send'),
      inFile('tracking/tracked-served')('a message without tracking has no pixel and no tracked links'),
    ],
  },
  {
    rule: 'send_at is an ISO 8601 moment in the future and within 72 hours, else 400 invalid_schedule',
    from: ['Email > send_at', 'Email > 5', 'Errors > invalid_schedule'],
    answers: [`${SEND}: invalid_schedule`],
    tests: [schedule('send_at has to be a moment in the next 72 hours')],
  },
  {
    rule: 'a scheduled mail that cannot be queued is a 500 schedule_failed',
    from: ['Email > 5', 'Errors > schedule_failed'],
    answers: [`${SEND}: schedule_failed`],
    tests: [failures('${name} that cannot be stored is a 500, leaves nothing, and can be repeated')],
  },
  {
    rule: 'without html, text and template_id: 400 no_content',
    from: ['Email > 1', 'Errors > no_content'],
    answers: [`${SEND}: no_content`],
    tests: [REFUSED],
  },
  {
    rule: 'without from_email and a default: 400 missing_from_email',
    from: ['Email > 2', 'Errors > missing_from_email'],
    answers: [`${SEND}: missing_from_email`],
    tests: [REFUSED, sender("the workspace's defaults stand in for what the request leaves out")],
  },
  {
    rule: 'an unknown template_id: 404 template_not_found',
    from: ['Email > 3', 'Errors > template_not_found'],
    answers: [`${SEND}: template_not_found`],
    tests: [REFUSED, merged('an unknown, deleted or foreign template is refused in the documented order')],
  },
  {
    rule: 'a sending domain that is unverified or lacks DKIM: 403 domain_invalid',
    from: ['Email > 4', 'Errors > domain_invalid'],
    answers: [`${SEND}: domain_invalid`],
    tests: [
      sender('an added domain that is not verified is refused'),
      domains('without one of its DKIM records a domain is not verified, and the values in DNS are shown'),
    ],
  },
  {
    rule: 'From is from_email of a verified domain, else the shared address; without one domain_invalid',
    from: ["decisions: Email > From (1) from_email's domain verified"],
    tests: [
      sender('a verified domain sends under its own name'),
      sender('a domain that was not added sends from the shared address and is answered at its own'),
      sender('without a shared address a domain that was not added is refused'),
      sender('a domain below a verified one is another domain'),
      sender('a domain that another workspace has verified is not verified here'),
    ],
  },
  {
    rule: 'each recipient is processed on its own; suppressed, invalid and repeated ones are skipped, with a row and an id',
    from: ['Email > 6', 'decisions: Email > to array one message (own'],
    tests: [
      recipients('suppressed, invalid and repeated recipients are skipped and do not fail the others'),
      recipients('a list of only invalid addresses is answered, and no mail is sent'),
      recipients('whatever an entry of a list holds, it fails nobody else'),
      parts('each recipient of to sees itself alone'),
    ],
  },
  {
    rule: 'addresses may have names, which the mail shows; results have the bare ones; who sends or is answered is ASCII before the @',
    from: ["decisions: Email > A mail's addresses may have"],
    tests: [
      recipients('names are taken with the addresses and shown in the mail, results have the bare ones'),
      REFUSED,
    ],
  },
  {
    rule: 'null for an optional field is as absent',
    from: ['decisions: Email > Optional fields null is as'],
    tests: [validation('null for an optional field is as if it were left out')],
  },
  {
    rule: 'a mail has one Message-ID, which its copies share; without copies each recipient has a mail of its own',
    from: ['decisions: Email > Every mail has one Message-ID'],
    tests: [parts('with copies all see to and cc, and nobody sees a blind copy')],
  },
  {
    rule: 'mails count against the email rate of the key, skipped recipients do not; more than a minute has room for is a 400',
    from: ['decisions: Accounts and keys > Each key has rate_limit (requests/min'],
    tests: [
      limits("recipients beyond a key's email rate are refused whole"),
      limits('a request that no minute of its key has room for is refused for good, and told why'),
      limits('who is skipped uses nothing of the email rate up'),
    ],
  },
  {
    rule: 'a request that would cross the hourly or daily limit is refused whole: 403 limit_reached',
    from: ['Email > 7', 'Errors > limit_reached', 'Errors > 403'],
    answers: [`${SEND}: limit_reached`],
    tests: [
      limits('a request that would cross the ${limit} is refused whole'),
      schedule('limits count when a send is scheduled'),
    ],
  },
  {
    rule: 'with a sandbox key nothing is sent, everything is checked and readable, no quota is used',
    from: [
      'Email > 8',
      'What the service does > A sandbox key mode produces',
      'decisions: Email > Sandbox each workspace has a',
    ],
    tests: [
      limits('with a sandbox key mail is stored and goes nowhere'),
      schedule('with a sandbox key a scheduled send reads as sent when its time has come'),
      schedule('with a sandbox key a scheduled send plays its outcome when its time has come'),
      inFile('msa/rest/batch')('a batch of a sandbox key is completed at once and mails nobody'),
    ],
  },
  {
    rule: 'addresses at simulator.test play an outcome for a sandbox key',
    from: ['decisions: Email > Sandbox each workspace has a'],
    tests: [
      inFile('msa/simulator')('each address plays what it is named after'),
      inFile('msa/simulator')('simulated results are events of the sandbox and suppress nobody'),
      inFile('msa/simulator')('batches play as well'),
      inFile('msa/simulator')('for a live key they are addresses like any other'),
    ],
  },
  {
    rule: 'a scheduled send is a 202 with scheduled, message_id and scheduled_at',
    from: ['Email > 9'],
    tests: [
      schedule('a scheduled mail waits for its time and is then sent'),
      group('a scheduled send with nobody left to mail is answered as an immediate one'),
    ],
  },
  {
    rule: 'scope all stops every mail, marketing no single send and no batch; looked at again when the mail leaves',
    from: ['decisions: Email > Suppression scope all stops every'],
    tests: [
      suppressions('a suppressed address or domain is not mailed until removed'),
      suppressions('an unsubscribed recipient still gets single sends and batches'),
      schedule('a recipient suppressed in the meantime is not mailed'),
      group('who is suppressed while the mail waits was never sent it'),
      inFile('msa/rest/marketing')(
        'a workspace may mark its mail as marketing: who unsubscribed does not get it',
      ),
    ],
  },
  {
    rule: 'cc and bcc are mailed and count among the 100',
    from: ['decisions: Email > cc bcc attachments [{filename content'],
    tests: [
      parts('with copies all see to and cc, and nobody sees a blind copy'),
      parts('with blind copies alone the recipients stay unknown to each other'),
      parts('to, cc and bcc together have at most a hundred addresses'),
    ],
  },
  {
    rule: 'attachments arrive as they were; the message has a size limit',
    from: ['decisions: Email > cc bcc attachments [{filename content'],
    tests: [
      parts('attachments arrive as they were, those that the HTML shows within it'),
      parts('attachments are taken as clients write them'),
      parts('attachments that cannot be are refused, and nothing of them stays'),
    ],
  },
  {
    rule: "own headers are written, the server's refused; tags are kept",
    from: ['decisions: Email > cc bcc attachments [{filename content'],
    tests: [
      parts('own header fields are written, those of the server are refused'),
      parts('tags are kept with the message and sent to nobody'),
    ],
  },
]
