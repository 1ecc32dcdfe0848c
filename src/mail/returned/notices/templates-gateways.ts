/**
 * Templates for filters, gateways and mailing lists: IMail, MailMarshal, InterScan, m-FILTER, MailFoundry, FML and
 * others.
 *
 * Based on the products' message templates.
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
