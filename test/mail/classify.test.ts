/** The classification of rejections: one line per wording of real servers. */
import t, { type Test } from 'tap'
import { classifyReply, REPLY_RULES, type ReplyClassification } from '../../src/mail/classify/classify.js'
import { SUBTYPES, type Subtype } from '../../src/mail/classify/classify-subtypes.js'
import type { Stage } from '../../src/mail/outcome.js'
import { assertLinear } from '../support/count-steps.js'

/** Classifies a reply as it stands in a log: code, enhanced code where there is one, text. */
function classify(line: string, stage?: Stage): ReplyClassification {
  const [, code, enhanced, text = ''] = /^(\d{3})[ -]?(?:([245]\.\d{1,3}\.\d{1,3}) ?)?(.*)$/.exec(line) ?? []
  return classifyReply({ code: Number(code), text, ...(enhanced === undefined ? {} : { enhanced }) }, stage)
}

function expectSubtypes(t: Test, expected: Partial<Record<Subtype, readonly string[]>>): void {
  for (const [subtype, lines] of Object.entries(expected))
    for (const line of lines) t.equal(classify(line).subtype, subtype, line)
}

t.test('an unknown recipient is distinguished from everything else', async t => {
  const lines = [
    '550 5.1.1 user unknown',
    '550 5.1.1 <ann@example.net>: Recipient address rejected: User unknown in virtual mailbox table',
    '550 5.1.1 The email account that you tried to reach does not exist. Please try double-checking the address',
    '550 5.4.1 Recipient address rejected: Access denied. AS(201806281) [AM0EUR02FT012.eop-EUR02.prod]',
    '550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient not found by SMTP address lookup',
    '550 5.1.1 RESOLVER.ADR.RecipNotFound; not found',
    "554 delivery error: dd This user doesn't have a yahoo.com account (ann@yahoo.com) [0]",
    '550 sorry, no mailbox here by that name. (#5.1.1)',
    '550 No such user here',
    '550 <ann@example.net>... User not exist',
    '550 Unknown user ann@example.net',
    '550 Requested action not taken: mailbox unavailable',
    '550 5.5.0 Adresse destinataire invalide. Invalid recipient. LPN007_416',
    '550 5.1.1 Not our customer',
    '550 5.7.1 No such user!',
    '550 Message was not accepted -- invalid mailbox. Local mailbox ann@example.net is unavailable: user not found',
    "550 'ann@example.net' is not a registered gateway user",
    '553 5.3.0 <ann@example.net>... No such user',
    '550 Mailbox not found',
    '550 5.1.0 Address rejected.',
    '511 5.1.1 unknown address or alias: ann',
    '550 Invalid recipient <ann@example.net> (#5.1.1)',
  ]
  for (const line of lines)
    t.match(
      classify(line, 'rcpt'),
      { cause: 'recipient', scope: 'address', permanence: 'permanent', subtype: 'no_such_mailbox' },
      line,
    )
})

t.test('a closed or moved mailbox counts against the recipient', async t => {
  expectSubtypes(t, {
    mailbox_disabled: [
      '550 5.2.1 The email account that you tried to reach is disabled. Learn more at https://support.google.com',
      '554 delivery error: dd Sorry your message to ann@example.net cannot be delivered. This account has been disabled or discontinued [#102].',
      '550 5.1.1 <ann@icloud.com>: inactive email address',
      '525 5.7.13 Disabled recipient address',
      '550 User suspended',
      '550 5.5.0 Le compte du destinataire est bloque. The recipient account is blocked. LPN007_426',
      '550 5.2.1 mailbox disabled, not accepting messages',
    ],
    mailbox_moved: ['550 5.1.6 recipient no longer on server: ann@example.net', '551 5.1.6 Ann has moved'],
    bad_address_syntax: ['553 5.1.3 what is that'],
  })
  t.match(classify('550 User suspended'), { cause: 'recipient', scope: 'address', permanence: 'permanent' })
})

t.test('a full mailbox is transient even as a 5xx (RFC 3463 §3.3)', async t => {
  const lines = [
    '452 4.2.2 mailbox full',
    '552 5.2.2 mailbox full',
    '452 4.2.2 The email account that you tried to reach is over quota. Please direct the recipient to clear space',
    '552 5.2.2 <ann@example.net> Quota exceeded (mailbox for user is full)',
    '554 5.2.2 mailbox full; STOREDRV.Deliver.Exception:QuotaExceededException.MapiExceptionShutoffQuotaExceeded',
    '552 Requested mail action aborted: exceeded storage allocation',
    '552 RCPT TO:<ann@example.net> Mailbox disk quota exceeded',
    '550 5.2.2 Over quota',
  ]
  for (const line of lines)
    t.match(
      classify(line),
      { cause: 'recipient', scope: 'address', permanence: 'transient', subtype: 'mailbox_full' },
      line,
    )
})

t.test('a rate-limited recipient is only retried later', async t => {
  for (const line of [
    '450 4.2.1 The user you are trying to contact is receiving mail too quickly. Please resend your message later',
    '450 4.2.1 receiving mail too quickly',
    '550 5.2.1 The user you are trying to contact is receiving mail at a rate that prevents additional messages',
    '451 4.7.1 The recipient has exceeded their message rate limit. Try again later.',
  ])
    t.match(
      classify(line),
      { cause: 'transient', scope: 'address', permanence: 'transient', subtype: 'recipient_rate_limited' },
      line,
    )
  t.equal(
    classify('550 5.7.1 Recipient address rejected: User ann temporary locked. Please try again later!')
      .subtype,
    'mailbox_unavailable',
  )
})

t.test('throttling is transient whatever the first digit, and slows our host down', async t => {
  expectSubtypes(t, {
    rate_limited: [
      '550 Connection frequency limited',
      '550 Domain frequency limited',
      '421 4.7.0 [TSS04] Messages from 192.0.2.1 temporarily deferred due to unexpected volume or user complaints',
      '421 4.7.1 [TS03] All messages from 192.0.2.1 will be permanently deferred',
      '421 4.7.28 Our system has detected an unusual rate of unsolicited mail originating from your IP address. To protect our users from spam, mail sent from your IP address has been temporarily rate limited.',
      '421 4.7.0 Try again later, closing connection. gsmtp',
      '421 RP-001 The mail server IP connecting to Outlook.com server has exceeded the rate limit allowed.',
      '451 4.7.650 The mail server [192.0.2.1] has been temporarily rate limited due to IP reputation.',
      '452 Too many recipients received this hour',
      '421 4.7.1 Messages to ann@icloud.com deferred due to excessive volume',
      '550 5.4.5 Daily SMTP relay sending limit exceeded for customer',
      '451 Requested action aborted: mail rate limit exceeded',
      '421 Too many spams from your IP (192.0.2.1)',
      '454 Throttling failure: Daily message quota exceeded.',
    ],
    too_many_connections: [
      '421 too many connections',
      '421 4.7.0 Too many concurrent SMTP connections from this IP address; please try again later.',
      '421 mwinf5c04 ME Trop de connexions, veuillez verifier votre configuration. Too many connections, slow down. OFR004_104',
      '421 Too many sessions opened',
      '554 Too many connections from your host',
    ],
  })
  for (const line of ['550 Connection frequency limited', '554 Too many connections from your host'])
    t.match(classify(line), { cause: 'transient', scope: 'source', permanence: 'transient' }, line)
})

t.test('a busy Exchange Online throttles our host; any other busy server means itself', async t => {
  t.match(classify('451 4.7.500 Server busy. Please try again later from [192.0.2.1]. (AS77713609)'), {
    cause: 'transient',
    scope: 'source',
    permanence: 'transient',
    subtype: 'server_busy',
  })
  expectSubtypes(t, {
    server_busy: ['421 4.3.2 System not accepting network messages', '421 Service not available', '421'],
  })
  t.match(classify('421 4.3.2 System not accepting network messages'), { scope: 'domain' })
})

t.test('a 5xx that asks for a retry is transient', async t => {
  t.match(classify('554 Please try again later'), { cause: 'transient', permanence: 'transient' })
})

t.test('too many recipients is transient, as 452 and as 552 (RFC 5321 §4.5.3.1.10)', async t => {
  for (const line of ['452 4.5.3 Too many recipients', '552 Too many recipients', '452 4.5.3'])
    t.match(
      classify(line, 'rcpt'),
      { cause: 'transient', scope: 'address', permanence: 'transient', subtype: 'too_many_recipients' },
      line,
    )
})

t.test('greylisting does not slow the host down, and its delay is parsed', async t => {
  for (const line of [
    '450 4.2.0 <ann@example.net>: Recipient address rejected: Greylisted, see http://postgrey.example/help',
    '451 4.7.1 Greylisting in action, please come back later',
    '451 4.7.1 Please try again in 300 seconds',
    '451 Temporarily rejected. Try again later.',
    '421 4.7.0 [GL01] Message from (192.0.2.1) temporarily deferred',
    '450 4.7.1 This server is not yet authorized to deliver mail from <bob@example.com>',
  ])
    t.match(
      classify(line, 'rcpt'),
      { cause: 'transient', scope: 'address', permanence: 'transient', subtype: 'greylisted' },
      line,
    )
  t.equal(classify('451 4.7.1 Please try again in 300 seconds', 'rcpt').retryAfterMs, 300_000)
})

t.test('a requested delay is parsed, up to a day', async t => {
  const delays: Readonly<Record<string, number | undefined>> = {
    '421 4.7.0 Too many connections, try again in 90 seconds': 90_000,
    '450 4.7.1 Greylisted for 5 minutes': 300_000,
    '451 Rate limit, please wait 2 hours': 7_200_000,
    '450 4.2.0 Greylisted, please come back in 00:04:59': 299_000,
    '421 Retry after 1800s': 1_800_000,
    '451 try again in 999999 hours': 86_400_000,
    '451 try again in 0 seconds': undefined,
    '451 You sent 100 messages in 60 minutes. Try again later.': undefined,
    '451 try again later (queue 4711)': undefined,
    '550 5.7.1 Spam. Try again in 300 seconds': undefined,
  }
  for (const [line, ms] of Object.entries(delays)) t.equal(classify(line).retryAfterMs, ms, line)
})

t.test('blocklisting or bad reputation of our host never counts against the recipient', async t => {
  expectSubtypes(t, {
    blocklisted: [
      '554 5.7.1 Service unavailable; Client host [192.0.2.1] blocked using zen.spamhaus.org',
      '554 5.7.1 blocked using zen.spamhaus.org',
      '554 5.7.1 <mx.example.com[192.0.2.1]>: Client host rejected: blocked using bl.example.org; Please see http://bl.example.org',
      '553 5.7.1 [BL21] Connections will not be accepted from 192.0.2.1, because the ip is in a list',
      '550 5.7.606 Access denied, banned sending IP [192.0.2.1]',
      '550 5.7.649 Access denied, banned sending IP [192.0.2.1]',
      '550 5.7.511 Access denied, banned sender[192.0.2.1].',
      "550 5.7.1 Unfortunately, messages from [192.0.2.1] weren't sent. Please contact your Internet service provider since part of their network is on our block list (S3140).",
      '554 Blocked - see https://support.proofpoint.com/dnsbl-lookup.cgi?ip=192.0.2.1',
      '554 resimta-po-01v.sys.comcast.net comcast 192.0.2.1 Comcast block for spam. Please see http://postmaster.comcast.net/smtp-error-codes.php#BL000000',
      '554 5.7.1 192.0.2.1 is blocked. AUP#In-1310',
      '550 mwinf5c04 ME Adresse IP source bloquee pour incident de spam. Client host blocked for spamming issues. OFR006_102',
    ],
    bad_reputation: [
      '554 5.7.1 [HM08] Message rejected due to local policy.',
      '550 5.7.1 [192.0.2.22 18] Our system has detected that this message is 550-5.7.1 likely suspicious due to the very low reputation of the sending IP 550-5.7.1 address.',
      '554 IP=192.0.2.1 - A problem occurred. Ask your postmaster for help or to contact tosa@rx.t-online.de to clarify.',
      '554 IP=192.0.2.1 - None/bad reputation. Ask your postmaster for help or to contact tobr@rx.t-online.de for reset. (NOWL)',
      "554 Your access to this mail system has been rejected due to the sending MTA's poor reputation.",
    ],
    bad_sender_reputation: [
      '550 5.7.1 Our system has detected that this message is likely suspicious due to the very low reputation of the sending domain.',
    ],
    reverse_dns: [
      '550 5.7.25 The IP address sending this message does not have a PTR record setup',
      '450 4.7.1 Client host rejected: cannot find your reverse hostname, [192.0.2.1]',
      '550 5.7.1 Connections not accepted from servers without a valid sender domain. Fix reverse DNS for 192.0.2.1',
    ],
    helo_refused: ['504 5.5.2 <localhost>: Helo command rejected: need fully-qualified hostname'],
  })
  t.match(classify('554 5.7.1 blocked using zen.spamhaus.org'), {
    cause: 'reputation',
    scope: 'source',
    permanence: 'permanent',
  })
})

t.test('failed sender authentication is attributed to our domain', async t => {
  for (const line of [
    '550 5.7.26 This mail has been blocked because the sender is unauthenticated. Gmail requires all senders to authenticate',
    '550 5.7.26',
    '554 5.7.9 Message not accepted for policy reasons. See https://postmaster.example/error-codes',
    '554 5.7.9 DMARC',
    "554 5.7.1 Your message was rejected due to example.com's DMARC policy.",
    '550 5.7.515 Access denied, sending domain example.com does not meet the required authentication level.',
    '550 5.7.23 <ann@example.net>: Recipient address rejected: Message rejected due to: SPF fail - not authorized',
    '550 Unauthenticated senders not allowed',
    '550 5.7.1 This message does not have authentication information or fails to pass',
  ])
    t.match(
      classify(line),
      { cause: 'policy', scope: 'sender', permanence: 'permanent', subtype: 'authentication_policy' },
      line,
    )
})

t.test('the wording of relays in bounces is recognized', async t => {
  expectSubtypes(t, {
    expired: [
      "554 I'm not going to try again; this message has been in the queue too long",
      '554 Envelope expired',
      '554 delivery failed 20 attempts',
      '554 Message could not be delivered for too long',
      '554 not delivered for more than 5 days',
      '550 retry time not reached for any host after a long failure period',
    ],
    network_failure: [
      "554 Sorry, I wasn't able to establish an SMTP connection",
      '554 The recipient server did not accept our requests to connect',
      '550 No connection could be made because the target computer actively refused it',
      '554 Host not reachable',
    ],
    bad_destination: [
      "554 Sorry, I couldn't find a mail exchanger or IP address",
      '550 5.4.4 SMTPSEND.DNS.NonExistentDomain; nonexistent domain',
      '550 all relevant MX records point to non-existent hosts',
      '550 The account or domain may not exist, they may be blacklisted, or missing the proper dns entries.',
    ],
    domain_accepts_no_mail: [
      '550 an MX or SRV record indicated no SMTP service',
      '521 5.3.2 Recipient address rejected: System not accepting network messages',
      '556 5.3.2',
    ],
    bad_address_syntax: [
      '550 malformed address: x may not follow y',
      '501 Syntax error in recipient address',
    ],
    no_such_mailbox: [
      '550 The recipient name is not recognized',
      '554 User ann not listed in Domino Directory',
      '554 Invalid final delivery userid: ann@example.net',
      '554 no valid recipients were found for this message',
      '550 <ann@example.net>: Recipient address rejected.',
      '550 5.1.1 RCP-P1 http://postmaster.example.net/response_codes?ip=203.0.113.9#rcp',
    ],
    recipient_refused: ['550 <ann@example.net>: Recipient address rejected: not today'],
    mailbox_full: [
      'The number of messages in recipient’s mailbox exceeded the local limit',
      'User mailbox exceeds allowed size',
    ].map(text => `550 ${text}`),
    mailbox_unavailable: ['550 The user account is temporarily limited.'],
  })
  // "System not accepting" with another code is a host that is busy or shutting down (RFC 3463 §3.4 on X.3.2).
  expectSubtypes(t, { server_busy: ['550 5.3.2 System not accepting network messages'] })
})

t.test('a 4.x.x without a reply code is a delay', async t => {
  t.match(classifyReply({ code: 0, enhanced: '4.0.0', text: 'something' }), {
    cause: 'transient',
    permanence: 'transient',
    subtype: 'unclassified_delay',
  })
})

t.test('rejected content is distinguished from rejected hosts', async t => {
  expectSubtypes(t, {
    spam_content: [
      '550 5.7.1 [192.0.2.1 12] Our system has detected that this message is 550-5.7.1 likely unsolicited mail. To reduce the amount of spam sent to Gmail, this message has been blocked.',
      '554 5.6.0 This message has been scored as spam with a probability of more than 90%',
      '554 5.7.1 [2] Message rejected under suspicion of SPAM',
      '550 5.7.1 Message content rejected, UBE, id=22220-02-222',
      '554 5.7.1 [CS01] Message rejected due to local policy.',
      '554 Message not allowed - [PH01] Email not accepted for policy reasons.',
      '554 DT:SPM 163 smtp',
    ],
    virus_content: ['550 Virus Detected; Content Rejected', '554 5.7.1 infected'],
    content_refused: [
      '500 5.6.1 Message content rejected',
      '552 5.7.0 This message was blocked because its content presents a potential security issue',
      '550 Mail content denied',
      '550 5.7.1 Messages with multiple addresses in From: header are not accepted',
      '552 5.6.0 Headers too large (3 max)',
      '550 5.7.1 This message is not RFC 5322 compliant. To reduce the amount of spam sent to Gmail, this message has been blocked.',
    ],
    message_too_big: [
      '552 5.3.4 Message size exceeds fixed limit',
      '552 5.3.4 too big',
      '552 5.2.3 Message length exceeds limit set by recipient',
      '552 sorry, that message size exceeds my databytes limit (#5.3.4)',
      '550 5.2.3 RESOLVER.RST.RecipSizeLimit; message too large for this recipient',
    ],
  })
  for (const line of ['552 5.3.4 too big', '554 5.7.1 infected', '554 5.6.0 scored as spam'])
    t.match(classify(line), { cause: 'content', permanence: 'permanent' }, line)
})

t.test('a missing extension never counts against the recipient', async t => {
  expectSubtypes(t, {
    smtputf8_unsupported: [
      '553 5.6.7 Address includes non-ASCII characters',
      '550 5.6.7 SMTPUTF8 is required, but was not offered by host mx.example.net[192.0.2.25]',
      '550 SMTPUTF8 not supported',
      '550 5.6.9 UTF-8 header message cannot be transferred to one or more recipients',
    ],
    '8bitmime_unsupported': [
      '554 5.6.3 Conversion required but not supported',
      '550 host does not support 8BITMIME',
    ],
  })
  for (const subtype of ['smtputf8_unsupported', '8bitmime_unsupported', 'message_too_big'] as const)
    t.not(SUBTYPES[subtype].cause, 'recipient')
})

t.test('a policy rejection of recipient or sender suppresses nobody', async t => {
  t.match(classify('554 5.7.1 <ann@example.net>: Recipient address rejected: Access denied', 'rcpt'), {
    cause: 'policy',
    scope: 'address',
    permanence: 'permanent',
    subtype: 'recipient_refused',
  })
  expectSubtypes(t, {
    recipient_refused: [
      '550 5.7.1 RESOLVER.RST.AuthRequired; authentication required',
      '550 5.7.133 RESOLVER.RST.SenderNotAuthenticatedForGroup; authentication required',
    ],
    sender_refused: [
      '553 5.1.8 <root@host.example>... Domain of sender address root@host.example does not exist',
      '550 5.1.0 <bounce@example.com> sender rejected. Refer to Error Codes section',
      '553 sorry, your envelope sender is in my badmailfrom list (#5.7.1)',
      '550 5.1.7',
    ],
    policy_refused: [
      '550 5.7.1 Access denied',
      '550 Denied by policy',
      '550 5.7.0 Local Policy Violation',
      '550 5.7.1',
    ],
    tls_required: ['530 5.7.0 Must issue a STARTTLS command first', '550 5.7.10'],
    authentication_required: ['530 5.7.0 Authentication required'],
    authentication_failed: ['535 5.7.8 Error: authentication failed: bad password'],
  })
})

t.test('a host that does not serve the domain is a configuration problem', async t => {
  for (const line of [
    '550 5.7.1 relay denied',
    '554 5.7.1 <ann@example.net>: Relay access denied',
    "553 sorry, that domain isn't in my list of allowed rcpthosts",
    '550 5.7.1 Unable to relay',
    '550 relay not permitted',
  ])
    t.match(
      classify(line, 'rcpt'),
      { cause: 'config', scope: 'domain', permanence: 'permanent', subtype: 'relay_denied' },
      line,
    )
  expectSubtypes(t, {
    routing_loop: [
      '550 5.4.6 routing loop',
      '554 5.4.6 Too many hops',
      '554 too many hops, this message is looping (#5.4.6)',
    ],
  })
})

t.test('a domain that accepts no mail is distinguished from an unknown mailbox', async t => {
  expectSubtypes(t, {
    bad_destination: [
      '550 5.1.2',
      '550 5.1.2 Host unknown (Name server: mx.example.net: host not found)',
      '550 5.1.2 Bad destination system address',
    ],
    domain_accepts_no_mail: [
      '550 5.1.10',
      '556 5.1.10 Recipient address has null MX',
      '550 Host does not accept mail',
      '521',
    ],
  })
  t.match(classify('550 5.1.2'), { cause: 'recipient', scope: 'domain', permanence: 'permanent' })
})

t.test('failures of the receiving system say nothing about the recipient', async t => {
  expectSubtypes(t, {
    system_failure: [
      '451 4.3.0 Local error in processing',
      '553 5.3.5 system config error',
      '451 Temporary local problem - please try later',
    ],
    system_full: [
      '452 4.3.1 Insufficient system storage',
      '452 4.4.5 Insufficient disk space; try again later',
    ],
    network_failure: ['451 4.4.2 Connection timed out', '450 4.4.1'],
    expired: [
      '554 4.4.7 Message expired: unable to deliver in 840 minutes.<421 4.4.2 Connection timed out>',
      '550 4.4.7 QUEUE.Expired; message expired',
      '550 5.4.316 Message expired, connection refused',
    ],
    protocol_error: [
      '503 5.5.1 Bad sequence of commands',
      '500 Syntax error',
      '550 5.5.0',
      '504 Command parameter not implemented',
    ],
  })
  t.match(classify('553 5.3.5 system config error'), { cause: 'transient', permanence: 'undetermined' })
  t.match(classify('550 4.4.7 QUEUE.Expired; message expired'), {
    cause: 'transient',
    permanence: 'transient',
  })
})

t.test('a 4xx is transient whatever its text', async t => {
  for (const line of [
    '450 5.1.1 User unknown',
    '450 User unknown',
    '421 4.7.1 blocked using zen.spamhaus.org',
    '499 what',
  ])
    t.equal(classify(line).permanence, 'transient', line)
})

t.test('an unrecognized reply counts against nobody', async t => {
  t.match(classify('550 Rejected'), { cause: 'policy', permanence: 'permanent', subtype: 'unclassified' })
  t.match(classify('499 what'), { cause: 'transient', subtype: 'unclassified_delay' })
  t.match(classifyReply({ code: 0, text: 'the dog ate it' }), {
    permanence: 'undetermined',
    subtype: 'unclassified',
  })
})

t.test('before RCPT no rejection counts against the recipient', async t => {
  t.match(classify('550 5.1.1 user unknown', 'mail'), { cause: 'policy', subtype: 'sender_refused' })
  t.match(classify('554 mailbox disabled', 'greeting'), { cause: 'policy', subtype: 'policy_refused' })
  t.match(classify('521 mx.example.net does not accept mail', 'greeting'), { cause: 'policy' })
})

t.test('mailbox wording about our sender does not count against the recipient', async t => {
  for (const line of [
    '550 5.7.1 Your IP address is not listed as a valid sender',
    '550 Your account has been suspended',
    '550 5.7.1 Client host unknown',
    '554 5.7.1 Your domain does not exist',
  ])
    t.not(classify(line, 'rcpt').cause, 'recipient', line)
})

t.test('words inside an address are not a reason', async t => {
  for (const line of [
    '550 5.1.1 <spam@example.net>: Recipient address rejected: User unknown',
    '550 5.1.1 <greylist@dnsbl.example.net>... User unknown',
    '550 Unknown user virus-alerts@example.net',
  ])
    t.equal(classify(line, 'rcpt').subtype, 'no_such_mailbox', line)
})

t.test('a 421 after RCPT is not greylisting: it closes the session', async t => {
  t.match(classify('421 4.7.0 Please try again later', 'rcpt'), { scope: 'domain', subtype: 'server_busy' })
})

t.test('an enhanced code at the start of the text counts if the reply has none', async t => {
  t.equal(classifyReply({ code: 550, text: '5.1.2 no' }).subtype, 'bad_destination')
  t.match(classifyReply({ code: 0, text: '5.1.1 no' }), { cause: 'recipient', permanence: 'permanent' })
})

t.test('no security or policy code suppresses, unless its text names the mailbox', async t => {
  for (let detail = 0; detail <= 30; detail++) {
    if (detail === 13) continue // RFC 5248 registry: "User account disabled"
    t.not(classify(`550 5.7.${detail} no`).cause, 'recipient', `5.7.${detail}`)
  }
})

t.test('every rule has a known subtype', async t => {
  for (const { subtype } of REPLY_RULES) t.ok(Object.hasOwn(SUBTYPES, subtype), subtype)
})

t.test('hostile text is classified in linear time', async t => {
  const worst = [
    'user ',
    'mailbox address ',
    'try ',
    'blocked by ',
    'message size ',
    '5.7.1 ',
    'a',
    ' ',
    'exceeds the ',
  ]
  // Twice as long is still within the bound, so that nothing is cut off.
  for (const word of worst)
    assertLinear(
      t,
      count => classifyReply({ code: 550, text: word.repeat(count) }),
      Math.floor(500 / word.length),
      word,
    )
})
