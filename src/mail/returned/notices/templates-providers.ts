/**
 * Templates for large providers: Gmail and Google Groups, Yahoo, GMX, mail.ru, Zoho, mobile carriers.
 *
 * Based on bounces these providers send.
 */
import {
  ALONE,
  ANGLED_FIRST,
  AT_END,
  NAMED,
  TRANSCRIPT,
  WITH_COLON,
  WITH_DATE,
  WITH_REMARK,
  type NoticeTemplate,
} from './template.js'

export const PROVIDER_TEMPLATES: readonly NoticeTemplate[] = [
  // Google Groups, in the sender's language
  {
    name: 'googlegroups',
    when: { field: ['x-failed-recipients', /@googlegroups\.com/i], text: /groups/i },
    recipient: [],
    impliedReason: 'recipient not allowed',
  },
  {
    name: 'googlegroups',
    when: {
      field: ['x-failed-recipients', /@/],
      text: /google\s{1,9}groups|groups\.google\.com|the group you tried to contact/i,
    },
    recipient: [],
    impliedReason: 'recipient not allowed',
  },
  // Gmail
  {
    name: 'gmail-delay',
    when: {
      from: /mail delivery subsystem/i,
      text: /following recipient has been delayed|warning message only/i,
    },
    start: /following recipient/i,
    recipient: [ALONE, ANGLED_FIRST],
    action: 'delayed',
  },
  {
    name: 'gmail',
    when: { text: /delivery to the following recipients? (?:has )?failed permanently/i },
    start: /following recipients?/i,
    recipient: [ALONE, ANGLED_FIRST],
  },
  {
    name: 'gmail',
    when: {
      from: /mailer-daemon@(?:googlemail|google|gmail)\.com/i,
      text: /wasn't delivered to|couldn't be delivered|message blocked|address not found/i,
    },
    recipient: [
      /(?:wasn't delivered to|couldn't be delivered to|your message to) ?<?([^\s<>]{1,64}@[^\s<>]{1,255}?)>?(?: (?:because|has been|couldn't)(.*))?$/i,
      ALONE,
    ],
  },

  // Yahoo and others with qmail-like bounces
  {
    name: 'yahoo',
    when: { text: /sorry, we were unable to deliver your message to the following address/i },
    recipient: [ANGLED_FIRST],
  },
  {
    name: 'yahoo',
    when: { text: /unable to deliver message to the following address/i },
    recipient: [ANGLED_FIRST, ALONE],
  },

  // GMX, web.de, 1&1
  {
    name: 'gmx',
    when: { text: /^smtp error from remote (?:mail )?server/im },
    recipient: [ALONE, WITH_COLON, ANGLED_FIRST],
  },

  // Verizon and its phone gateways
  {
    name: 'verizon',
    when: {
      from: /post_?master@(?:[\w.-]{0,60}\.)?vtext\.|@(?:[\w.-]{0,60}\.)?vzwpix\.|sysadmin@/i,
      text: /error/i,
    },
    recipient: [NAMED, /^\s{0,20}to:? {1,9}<?([^\s<>]{1,64}@[^\s<>]{1,255})>?()/i],
  },
  {
    name: 'verizon',
    when: { text: /^\s{0,20}rcpt to:/im, subject: /^re:|undeliver|fail/i },
    recipient: [/^\s{0,20}rcpt to:? {0,9}<?([^\s<>]{1,64}@[^\s<>]{1,255})>?()/i],
  },

  // KDDI and au
  {
    name: 'kddi',
    when: {
      from: /no-?reply@(?:[\w.-]{0,60}\.)?dion\.ne\.jp/i,
    },
    recipient: [
      /could not be delivered to:? {0,9}<?([^\s<>]{1,64}@[^\s<>]{1,255})>?(.*)$/i,
      ANGLED_FIRST,
      ALONE,
    ],
  },
  {
    name: 'ezweb',
    when: {
      text: /the user\(s\) account is|following recipients did not receive this message|each of the following recipients was rejected|the user\(s\) (?:rejected|refused)/i,
    },
    recipient: [ANGLED_FIRST, WITH_COLON, ALONE],
  },
  // Biglobe
  {
    name: 'biglobe',
    when: { text: /-- ?non-delivered information/i },
    start: /had delivery problems/i,
    recipient: [ALONE, ANGLED_FIRST],
  },

  // SendGrid: `ann:000000:<ann@example.net> : 192.0.2.1 : ...`
  {
    name: 'sendgrid',
    when: { text: /automatically generated message from sendgrid/i },
    recipient: [/:<([^\s<>]{1,64}@[^\s<>]{1,255})> : (.*)$/],
  },
  // Amazon SES and WorkMail
  {
    name: 'amazonses',
    when: { from: /mailer-daemon@(?:[\w.-]{0,60}\.)?amazonses\.com/i },
    recipient: [ALONE, /message to <([^\s<>]{1,64}@[^\s<>]{1,255})>()/i],
  },
  {
    name: 'undeliverable-to',
    when: { text: /following message to <[^<>]{1,320}> was undeliverable/i },
    recipient: [/following message to <([^\s<>]{1,64}@[^\s<>]{1,255})> was undeliverable()/i],
  },
]

/** Filters, gateways and mailing lists: IMail, MailMarshal, InterScan, m-FILTER, MailFoundry, FML and others. */
export const GATEWAY_TEMPLATES: readonly NoticeTemplate[] = [
  // Ipswitch IMail
  {
    name: 'imail',
    when: { field: ['x-mailer', /^<?smtp32/i] },
    recipient: [AT_END, ALONE, WITH_COLON],
  },
  // MailMarshal SMTP: the reason precedes the recipients
  {
    name: 'mailmarshal',
    when: { text: /could not be delivered because of/i },
    start: /following recipients? (?:was|were) affected|could not be delivered because of/i,
    recipient: [ALONE, ANGLED_FIRST],
  },
  // Trend Micro InterScan
  {
    name: 'interscan',
    when: { from: /interscan/i },
    recipient: [
      AT_END,
      /(?:rcpt to:|deliver message to) ?<([^\s<>]{1,64}@[^\s<>]{1,255})>(.*)$/i,
      ANGLED_FIRST,
      ALONE,
    ],
  },
  {
    name: 'interscan',
    when: { text: /unable to deliver message to <[^>]{1,320}>(?: \(and other recipients| because)?/i },
    recipient: [/unable to deliver message to:? ?<([^\s<>]{1,64}@[^\s<>]{1,255})>(.*)$/i],
  },
  // TransWARE Active! hunter
  {
    name: 'activehunter',
    when: { text: />>> [^\s<>]{1,320} <[^\s<>]{1,320}>/ },
    recipient: [/^\s{0,20}>>> [^\s<>]{1,320} <([^\s<>]{1,64}@[^\s<>]{1,255})>(.*)$/],
  },
  // Digital Arts m-FILTER
  {
    name: 'mfilter',
    when: { text: /^-{5,}server message/im },
    recipient: [ALONE, ANGLED_FIRST],
  },
  // McAfee
  {
    name: 'mcafee',
    when: { subject: /^delivery status$/i, text: /^\s{0,9}<[^\s<>]{1,320}>\s{1,9}\(/m },
    recipient: [ANGLED_FIRST],
  },
  // MailFoundry
  {
    name: 'mailfoundry',
    when: { text: /unable to deliver message to:|delivery failed for the following reason/i },
    recipient: [/unable to deliver message to: ?<?([^\s<>]{1,64}@[^\s<>]{1,255})>?(.*)$/i],
  },
  // SurfControl
  {
    name: 'surfcontrol',
    when: { text: /transcript of the attempts to send the message follows/i },
    recipient: [NAMED, WITH_COLON],
  },
  // Mail2000, MOS and similar: `---The following addresses had delivery errors---`
  {
    name: 'mail2000',
    when: { text: /-- ?the following addresses had (?:permanent )?delivery (?:errors|problems)/i },
    start: /following addresses had/i,
    recipient: [WITH_REMARK, ANGLED_FIRST, ALONE],
  },
  // MailEnable and similar
  {
    name: 'x6',
    when: { text: /we had trouble delivering your message\. full details follow/i },
    recipient: [
      /permanent errors: ([^\s<>,;]{1,64}@[^\s<>,;]{1,255}?)\.? (?=reason)(.*)$/i,
      /rejected recipient <([^\s<>]{1,64}@[^\s<>]{1,255})>(.*)$/i,
      AT_END,
    ],
  },
  {
    name: 'mailenable',
    when: { text: /mailenable:|message could not be delivered to some recipients/i },
    recipient: [/\[smtp:([^\s<>\]]{1,64}@[^\s<>\]]{1,255})\](.*)$/i, NAMED, ALONE, ANGLED_FIRST, WITH_REMARK],
  },
  // MDaemon
  {
    name: 'mdaemon',
    when: { from: /mdaemon|mailer-daemon/i, text: /session transcript|failed address/i },
    recipient: [NAMED, ANGLED_FIRST, ALONE, TRANSCRIPT, AT_END],
  },
  // Barracuda, amavis, without the DSN
  {
    name: 'content-filter',
    when: { text: /message was not (?:relayed|delivered) to:|blocked by our spam|has not been delivered:/i },
    recipient: [ANGLED_FIRST, /message to:? ?<?([^\s<>]{1,64}@[^\s<>]{1,255})>?()/i, ALONE],
    impliedReason: 'blocked by content filter, spam',
  },
  // FML, a mailing list manager that rejected the message
  {
    name: 'fml',
    when: { text: /^duplicated message-id in </im },
    recipient: [/^duplicated message-id in <([^\s<>]{1,64}@[^\s<>]{1,255})>()/i],
    impliedReason: 'mail loop',
  },
  {
    name: 'fml',
    when: {
      subject: /not member article|ml\b.{0,40}\b(?:error|alert)|^loop alert/i,
      text: /not (?:a )?member|mailing list/i,
    },
    recipient: [ANGLED_FIRST, /<([^\s<>]{1,64}@[^\s<>]{1,255})>()/],
    impliedReason: 'recipient not allowed',
  },
  // `Your Message ... Did not reach the following recipient: ann@example.net`
  {
    name: 'did-not-reach',
    when: { text: /did not reach the following recipient/i },
    start: /^\s{0,20}your message\b/i,
    recipient: [
      /did not reach the following recipient(?:\(s\)|s)?: ?<?([^\s<>]{1,64}@[^\s<>]{1,255})>?(.*)$/i,
      WITH_DATE,
      /^([^\s<>:]{1,64}@[^\s<>:]{1,255})()\s{0,20}$/,
    ],
  },
]
