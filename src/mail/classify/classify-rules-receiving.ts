/**
 * Classifier rules for common texts about the recipient, its domain or the receiving system.
 *
 * Matched against normalized text (lower case), after the rules about the sender. Vague phrases ("try again later", "access denied") come
 * last, since other replies contain them too. Sources: Postfix, Exim, Sendmail, qmail, Exchange, Domino, Cyrus and others; RFC 5321 §4.2.3,
 * RFC 7504, RFC 7505.
 */
import type { ReplyRule } from './classify-subtypes.js'

/** Texts where "address", "account" or "host" is ours. */
const OURS =
  /\b(?:ip|client|sender|sending|from) (?:address|host|account)|\byour (?:ip|host|domain|server|account|address|e?-?mail address)\b/

const TRY_LATER: readonly RegExp[] = [
  /(?:try|retry|send)\b.{0,20} (?:again|later)/,
  /retry later/,
  /try (?:\w{1,20} ){0,2}later/,
  /please wait/,
  /temporarily (?:rejected|refused|unavailable|blocked)/,
]

export const RECEIVING_RULES: readonly ReplyRule[] = [
  // Relaying denied: the host is not responsible for the domain (Postfix, Sendmail, qmail, Exim, Exchange).
  {
    text: [
      /relay(?:ing)?\b.{0,40}\b(?:denied|not permitted|not allowed|prohibited|forbidden|disallowed|refused)/,
      /(?:unable|cannot|not permitted|not allowed|not authorized|trying to use me) .{0,30}\brelay/,
      /allowed rcpthosts/,
      /unauthorized relay/,
      /no relay/,
      /we do not relay/,
      /open relay/,
      /authenticate via (?:pop|imap)/,
      /not a gateway/,
      /domain isn't in my list/,
      /not (?:a )?local (?:domain|host)/,
      /does not accept mail for (?:this|that) domain/,
    ],
    subtype: 'relay_denied',
  },
  {
    text: [
      /(?:routing|mail|forwarding|alias) loop/,
      /loops? back to (?:me|myself)/,
      /looping/,
      /too many hops/,
      /hop count/,
      /received headers/,
    ],
    subtype: 'routing_loop',
  },

  // The sender address.
  {
    text: [
      /(?:sender|mail from|from address|envelope sender|return.?path)\b.{0,60}\b(?:reject|refus|denied|not accepted|invalid|not exist|unknown|blocked|not found|unresolvable|not allowed|verify failed|not permitted)/,
      /badmailfrom/,
      /badsender/,
      /domain of sender/,
      /sender verif/,
      /could not verify sender/,
      /valid sender domain/,
      /blocked sender/,
    ],
    subtype: 'sender_refused',
  },

  // Mailbox disabled or closed (Gmail, Yahoo, iCloud, Exchange, Cyrus, Courier).
  {
    text: [
      /(?:temporar\w{0,3}) (?:locked|disabled|suspended|inactive|unavailable|blocked|limited|restricted)/,
      /temporary lock/,
    ],
    subtype: 'mailbox_unavailable',
    unless: /service|server|system|resource|connection/,
  },
  {
    text: [
      /(?:mailbox|account|user|recipient|address|email)\b.{0,60}\b(?:disabled|suspended|inactive|deactivated|discontinued|expired|not active|closed|terminated|locked|frozen|deleted|on hold)/,
      /(?:disabled|inactive|suspended|deactivated|expired|closed) (?:\w{1,20} )?(?:mailbox|account|user|recipient|address|email)/,
      /no longer (?:active|in use|valid|available|accepting|accepts)/,
      /account that you tried to reach is inactive/,
    ],
    subtype: 'mailbox_disabled',
    unless: OURS,
  },
  {
    text: [
      /has moved/,
      /recipient no longer on server/,
      /user not local; please try/,
      /moved to/,
      /changed (?:his|her|their|its) address/,
      /new address is/,
    ],
    subtype: 'mailbox_moved',
  },

  {
    text: [
      /malformed (?:\w{1,20} )?address/,
      /(?:recipient|mailbox|address) syntax/,
      /syntax error in (?:\w{1,20} )?(?:address|mailbox|recipient)/,
    ],
    subtype: 'bad_address_syntax',
    unless: /sender|mail from|from address/,
  },

  // Unknown user, in the wording of some thirty servers. Provider-specific texts are in the provider rules.
  {
    text: [
      /(?:user|recipient|mailbox|account|address|addressee|local ?part|alias|customer|subscriber)s?\b.{0,80}\b(?:unknown|not (?:be )?found|n't found|not known|not exist|n't exist|unrecognized|not recognized|non-?existent|invalid|not listed|no mailbox|undeliverable|not valid|not a valid|not registered|doesn't have)/,
    ],
    subtype: 'no_such_mailbox',
    unless: OURS,
  },
  {
    text: [
      /(?:no such|unknown|invalid|non-?existent|unrouteable|unroutable|undeliverable|bad|not a known|not a valid|not a registered|no valid|no) (?:\w{1,20} )?(?:user|recipient|mailbox|account|address|addressee|customer|person|local ?part|alias|destination address|email)\b/,
      /no mailbox here/,
      /not our customer/,
      /does(?: not|n't) (?:have|like) (?:a |an |that )?(?:\S{1,40} )?(?:account|mailbox|recipient)/,
      /doesn't exist here/,
      /not exist on (?:this|the) server/,
      /recipnotfound/,
      /recipientnotfound/,
      /user ?unknown/,
      /there is no one (?:here|at this)/,
      /no longer exists/,
      /no such person/,
      /invalid final delivery userid/,
      /no valid recipients/,
      /recipient name is not recogni[sz]ed/,
      /not listed in (?:public|domino|the|this)/,
      /not a known (?:user|recipient)/,
    ],
    subtype: 'no_such_mailbox',
    unless: OURS,
  },
  { text: [/mailbox (?:is )?(?:currently )?unavailable/], code: /^4/, subtype: 'mailbox_unavailable' },
  // RFC 5321 §4.2.3: 550 is "mailbox unavailable (e.g., mailbox not found, no access, or rejected for policy reasons)"; with 5.7.x it is
  // policy.
  {
    text: [/mailbox (?:is )?(?:currently )?unavailable/],
    code: /^5/,
    enhanced: /^(?!5\.7\.)/,
    subtype: 'no_such_mailbox',
    unless: OURS,
  },

  // The domain (including RFC 7504 and RFC 7505 wording).
  {
    text: [
      /(?:couldn't|could not|cannot|can't) find (?:a |any )?(?:mail exchanger|mx|host named)/,
      /mx records? (?:\w{1,20} ){0,3}(?:point|non-?existent|not found)/,
      /no (?:valid )?(?:mx|mail exchanger|a or mx)\b.{0,30}\b(?:found|record|host)/,
      /nonexistentdomain/,
      /unrouteable (?:mail )?(?:domain|host)/,
    ],
    subtype: 'bad_destination',
  },
  {
    text: [
      /(?:domain|host)\b.{0,60}\b(?:not (?:be )?found|does not exist|doesn't exist|unknown|no such|cannot be resolved|nxdomain)/,
      /(?:no such|unknown|invalid|unrouteable|bad) (?:mail )?(?:domain|host|destination)/,
      /host or domain name not found/,
      /bad destination (?:system|host)/,
      /unrouteable mail domain/,
    ],
    subtype: 'bad_destination',
    unless: OURS,
  },
  {
    text: [
      /(?:does not|doesn't|do not|never) accept(?:s)? (?:any )?(?:e?-?mail|messages)/,
      /null ?mx/,
      /no (?:mail|smtp) (?:accepted|service)/,
    ],
    subtype: 'domain_accepts_no_mail',
  },

  // Problems of the receiving system.
  {
    text: [
      /(?:insufficient|out of|not enough|low on|lack of) (?:system )?(?:disk ?space|storage|disk|space)/,
      /no space left/,
      /disk full/,
      /file system full/,
    ],
    subtype: 'system_full',
  },
  {
    text: [
      /(?:connection|connect|operation|session|network)\b.{0,60}\b(?:timed? ?out|refused|reset|lost|dropped)/,
      /name service error/,
      /no route to host/,
      /host not reachable/,
      /(?:unable|failed|not able|couldn't|could not|cannot|can't|wasn't able) (?:to )?(?:establish an? smtp )?connect/,
      /wasn't able to establish an smtp connection/,
      /(?:did not|didn't) accept our requests to connect/,
      /no connection could be made/,
      /socket error/,
      /network (?:is )?unreachable/,
      /host (?:is )?unreachable/,
    ],
    subtype: 'network_failure',
  },
  {
    text: [
      /(?:temporary|temporarily|internal|local|system|server|software|lookup|dns|database|ldap)\b.{0,40}\b(?:failure|error|problem)/,
      /(?:failure|error) in processing/,
      /config(?:uration)? error/,
      /server configuration/,
      /resources (?:are )?temporarily/,
    ],
    subtype: 'system_failure',
  },
  {
    text: [
      /server (?:is )?(?:too )?busy/,
      /too busy/,
      /overload/,
      /high load/,
      /load (?:average|too high)/,
      /service (?:is )?(?:currently |temporarily )?(?:not available|unavailable)/,
      /system not accepting/,
      /shutting down/,
      /closing (?:transmission )?channel/,
      /cannot accept (?:new )?(?:mail|messages) (?:now|at this time)/,
      /(?:temporarily )?out of service/,
    ],
    subtype: 'server_busy',
  },
  // A recipient rejected for a reason unrelated to the recipient (Postfix check_recipient_access and others).
  {
    text: [
      /recipient address rejected/,
      /recipient (?:was )?(?:rejected|refused)/,
      /recipient not (?:accepted|allowed)/,
      /restricted recipient/,
    ],
    subtype: 'recipient_refused',
  },
  {
    text: TRY_LATER,
    code: /^45[0-2]/,
    stage: ['rcpt', 'data', 'final_dot'],
    subtype: 'greylisted',
  },
  {
    text: TRY_LATER,
    subtype: 'server_busy',
  },
  {
    text: [
      /(?:policy|policies|administrative|access|permission|security)\b.{0,40}\b(?:denied|reject|refus|violation|prohibit|reasons?|restriction|not allowed)/,
      /denied by policy/,
      /local policy/,
      /not accepted (?:for|due)/,
      /administratively/,
      /aup#/,
      /access denied/,
      /not welcome/,
      /go away/,
    ],
    subtype: 'policy_refused',
  },
  {
    text: [
      /syntax error/,
      /bad sequence/,
      /(?:command|parameter|argument)s? (?:not|un)\S{0,3} ?(?:implemented|recognized|recognised)/,
      /unrecogni[sz]ed command/,
      /unknown command/,
      /invalid command/,
      /protocol error/,
      /improper (?:use|command)/,
      /out of order/,
    ],
    subtype: 'protocol_error',
  },
]
