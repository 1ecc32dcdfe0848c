/**
 * Classifier rules for common texts about the sender: our host, rate, sender address or content.
 *
 * Matched against normalized text (lower case), after provider rules and before recipient rules: a rejection of our host often mentions the
 * recipient ("recipient address rejected: blocked using ..."), and classifying it as the recipient's fault would suppress an innocent
 * address. Sources: Postfix, Exim, Sendmail, qmail, Exchange and their policy services, RFC 6647, RFC 7372, RFC 7489.
 */
import type { ReplyRule } from './classify-subtypes.js'

export const SENDING_RULES: readonly ReplyRule[] = [
  // Exim gives up on a mailbox that stayed full, and says which.
  {
    text: [/mailbox is full\b.{0,20}\bretry time(?:out)? (?:not reached|exceeded)/],
    subtype: 'mailbox_full',
  },
  // A relay that gave up quotes the last error, which is not the reason (RFC 3463 X.4.7).
  { enhanced: /^[45]\.4\.7$/, subtype: 'expired' },
  {
    text: [
      /message expired/,
      /delivery time expired/,
      /queue\.expired/,
      /(?:envelope|queue time|queue lifetime) expired/,
      /in the queue (?:for )?too long/,
      /(?:not|n't|unable to) (?:be )?deliver(?:ed)? (?:the message |your message )?(?:in|for|after|within) (?:more than |over |the last |the past )?\d/,
      /delivery failed \d{1,4} attempts/,
      /(?:too many|maximum(?: number of)?|all|exceeded) (?:delivery |retry )?(?:attempts|retries) (?:to deliver|failed|exceeded|reached|have failed)/,
      /retr(?:y|ies) (?:limit|time ?out|period) (?:exceeded|expired|reached)/,
      /failure period/,
      /delivered for too long/,
      /deleted from (?:the )?queue/,
      /despite repeated attempts/,
      /retry time(?:out)? (?:not reached|exceeded)/,
    ],
    subtype: 'expired',
  },

  // Greylisting: postgrey, milter-greylist, sqlgrey, rspamd and others (RFC 6647).
  { text: [/gr[ae]y-? ?list/], subtype: 'greylisted' },
  {
    text: [
      /not yet authorized to deliver mail from/,
      /please (?:come|try) back (?:later|in)/,
      /come back in \d/,
    ],
    code: /^4/,
    subtype: 'greylisted',
  },

  // DNS blocklists: Postfix reject_rbl_client, Exim dnslists, Sendmail dnsbl, and the lists' own texts.
  {
    text: [
      /(?:blocked|rejected|listed|refused|denied|found) (?:using|by|in|on|at|through|due to) \S{0,60}(?:dnsbl|rbl|spamhaus|spamcop|sorbs|barracuda|uceprotect|abuseat|surriel|blacklist|blocklist)/,
    ],
    subtype: 'blocklisted',
  },
  {
    text: [
      /client host (?:\S{1,80} )?(?:rejected|blocked)[^.]{0,40} using /,
      /blocked using /,
      /client host blocked/,
    ],
    subtype: 'blocklisted',
  },
  {
    text: [
      /spamhaus\.org/,
      /spamcop\.net/,
      /barracudacentral/,
      /dnsbl/,
      /uceprotect/,
      /\brbl\b/,
      /sorbs\.net/,
      /invaluement/,
    ],
    subtype: 'blocklisted',
  },
  {
    text: [
      /black-?list/,
      /block-?list/,
      /block list/,
      /blacklisted/,
      /banned send(?:er|ing) ip/,
      /banned ip/,
    ],
    subtype: 'blocklisted',
  },
  {
    text: [
      /\b(?:ip|ip address|host|client|server|network)\b.{0,80}\b(?:is|are|was|has been|have been) (?:temporarily )?(?:blocked|banned|blocklisted)/,
    ],
    subtype: 'blocklisted',
  },

  // Sender authentication (RFC 7372, RFC 7489, Postfix policyd-spf, OpenDMARC).
  {
    text: [
      /\bdmarc\b/,
      /\bdkim\b/,
      /\bspf\b/,
      /sender policy framework/,
      /anti-?spoof/,
      /spoofed/,
      /\barc (?:fail|seal)/,
    ],
    subtype: 'authentication_policy',
  },
  {
    text: [
      /sender (?:is |are )?(?:unauthenticated|not authenticated)/,
      /unauthenticated (?:email|mail|senders?)/,
      /authentication information or fails/,
      /purported responsible address/,
      /required authentication level/,
    ],
    subtype: 'authentication_policy',
  },

  // Our DNS names.
  {
    text: [
      /reverse dns/,
      /\brdns\b/,
      /\bptr\b/,
      /reverse (?:lookup|hostname|mapping|map)/,
      /cannot find your (?:reverse )?hostname/,
      /fcrdns/,
      /in-addr\.arpa/,
      /no reverse/,
      /dns name (?:not found|does not match)/,
    ],
    subtype: 'reverse_dns',
  },
  {
    text: [
      /helo command rejected/,
      /ehlo command rejected/,
      /(?:invalid|bad|bogus|forged) (?:helo|ehlo)/,
      /(?:helo|ehlo) (?:name|hostname|argument|is|does|has|must|required)/,
    ],
    subtype: 'helo_refused',
  },

  // TLS and AUTH (RFC 3207 §4, RFC 4954 §6).
  {
    text: [
      /must issue a starttls/,
      /starttls (?:is )?required/,
      /require[sd]? (?:tls|encryption|starttls)/,
      /(?:tls|encryption|encrypted connection) (?:is )?(?:required|needed|mandatory)/,
      /encryption needed/,
    ],
    subtype: 'tls_required',
  },
  {
    text: [
      /authentication (?:credentials invalid|failed|failure|unsuccessful)/,
      /bad (?:username|credentials)/,
      /invalid (?:login|credentials)/,
      /username and password not accepted/,
    ],
    subtype: 'authentication_failed',
  },
  {
    text: [
      /authentication (?:is )?required/,
      /must authenticate/,
      /auth(?:entication)? first/,
      /smtp auth(?:entication)? (?:is )?(?:required|needed)/,
      /not authenticated/,
    ],
    subtype: 'authentication_required',
  },

  // A quota of messages over time is a rate limit, not a full mailbox.
  {
    text: [/throttl/, /(?:sending|daily|hourly|per (?:day|hour)) (?:\w{1,20} )?(?:quota|limit)/],
    subtype: 'rate_limited',
  },
  // Mailbox full.
  {
    text: [
      /(?:mailbox|mail box|inbox|account|user|recipient|maildir)\b.{0,60}\b(?:full|over ?quota|over its quota|exceed(?:s|ed|ing)? (?:its |the |their )?(?:\w{1,20} )?(?:quota|storage|space))/,
    ],
    subtype: 'mailbox_full',
  },
  {
    text: [
      /over ?quota/,
      /over the allowed quota/,
      /quota (?:is )?(?:exceeded|full|violation|exceed)/,
      /exceed(?:s|ed|ing)? (?:\w{1,20} )?quota/,
      /(?:exceeded|out of) storage (?:allocation|quota|space)/,
      /exceeded storage/,
      /mailbox full/,
      /mailbox\b.{0,40}\bexceed(?:s|ed)? (?:the |its |their )?(?:local limit|allowed size|size|maximum|limit)/,
      /(?:mailbox|mail box) (?:size )?limit/,
      /would exceed mailbox/,
      /not enough (?:storage )?space (?:in|on) (?:the )?mailbox/,
      /disk quota/,
      /quotaexceeded/,
    ],
    subtype: 'mailbox_full',
  },

  // Rate limits per recipient, transaction or host.
  {
    text: [
      /(?:user|recipient|mailbox|account|you are trying to contact)\b.{0,60}\b(?:receiving|received|exceeded|getting) (?:e?mail |messages? |too (?:much|many) )?.{0,40}(?:too quickly|at a rate|rate limit|message rate|too many messages|too much mail)/,
    ],
    subtype: 'recipient_rate_limited',
  },
  {
    text: [
      /too many recipients/,
      /recipients? (?:limit|count) (?:exceeded|reached|exceeds)/,
      /maximum (?:number of )?recipients/,
      /too much recipients/,
      /policy size per transaction/,
    ],
    subtype: 'too_many_recipients',
  },
  {
    text: [
      /too many (?:\w{1,20} ){0,2}(?:connections?|sessions?)/,
      /(?:connections?|sessions?) (?:limit|count)/,
      /(?:maximum|max) (?:number of )?(?:\w{1,20} )?(?:connections|sessions)/,
      /concurrent (?:\w{1,20} )?connections?/,
      /trop de connexions/,
      /simultaneous connections/,
    ],
    subtype: 'too_many_connections',
  },
  {
    text: [
      /(?:connection|connect|ip|domain|message|mail|sending|sender|relay) (?:frequency|rate) (?:is )?(?:limit|exceed|too)/,
      /frequency limited/,
      /rate.?limit/,
      /ratelimit/,
      /rate (?:exceeded|control)/,
      /too (?:fast|frequent|quickly)/,
      /slow down/,
      /throttl/,
      /too many (?:messages|mails|emails|e-mails|requests|commands|attempts|spams)/,
      /(?:excessive|unexpected) volume/,
      /sending limit/,
      /(?:hourly|daily|message|send|mail) (?:limit|quota) (?:exceeded|reached)/,
      /unusual rate/,
      /temporarily deferred/,
    ],
    subtype: 'rate_limited',
  },

  // Viruses before spam, since many products report both in one sentence.
  { text: [/virus/, /malware/, /phish/, /infected/, /trojan/, /malicious/], subtype: 'virus_content' },
  {
    text: [
      /(?:poor|bad|low|very low) (?:\w{1,20} ){0,2}reputation of the (?:sending |sender )?domain/,
      /domain (?:has )?(?:a )?(?:poor|bad|low) reputation/,
      /sender(?:'s)? reputation/,
      /domain reputation/,
    ],
    subtype: 'bad_sender_reputation',
  },
  { text: [/reputation/, /senderbase/, /senderscore/], subtype: 'bad_reputation' },
  {
    text: [
      /\bspam/,
      /unsolicited/,
      /\bube\b/,
      /\buce\b/,
      /\bjunk\b/,
      /bulk ?mail/,
      /suspicious/,
      /scored as/,
    ],
    subtype: 'spam_content',
  },
  {
    text: [
      /(?:message|content|mail|header|body|attachment|file|mime|subject|url|link)s?\b.{0,40}\b(?:content (?:is )?(?:rejected|denied|refused)|not allowed here|filtered|prohibited|potential security issue|illegal attachment|banned)/,
      /mail content denied/,
      /content (?:rejected|denied|filter)/,
      /illegal attachment/,
      /(?:message|email) (?:was )?filtered/,
    ],
    subtype: 'content_refused',
  },
  {
    text: [
      /multiple addresses in from/,
      /headers? too large/,
      /header error/,
      /(?:bare|stray) (?:lf|cr|newline)/,
      /rfc ?(?:2822|5322)/,
      /(?:missing|invalid|duplicate|malformed|multiple) (?:\S{1,20} )?headers?/,
      /message format/,
    ],
    subtype: 'content_refused',
  },

  // Missing extensions as reported by relays (RFC 6531 §3.5, RFC 6152 §3).
  {
    text: [
      /smtputf8\b.{0,40}\b(?:not|required|support|lack)/,
      /(?:no|not|without|support)\b.{0,40}\bsmtputf8/,
    ],
    subtype: 'smtputf8_unsupported',
  },
  {
    text: [
      /8bitmime\b.{0,40}\b(?:not|required|support|lack)/,
      /(?:no|not|without|support)\b.{0,40}\b8bitmime/,
    ],
    subtype: '8bitmime_unsupported',
  },

  // Size (RFC 1870 §6.1).
  {
    text: [
      /(?:message|mail|size|length|data)\b.{0,40}\b(?:too (?:big|large|long)|exceed(?:s|ed)?|larger than)/,
      /databytes limit/,
      /size limit/,
      /recipsizelimit/,
      /oversized?\b/,
    ],
    subtype: 'message_too_big',
  },
]
