/**
 * Templates for groupware: Exchange, Office 365, Notes and Domino, GroupWise.
 *
 * Based on the products' message templates.
 */
import {
  ALONE,
  ANGLED_FIRST,
  AT_END,
  MAILTO,
  WITH_COLON,
  WITH_DATE,
  WITH_REMARK,
  type NoticeTemplate,
} from './template.js'

export const GROUPWARE_TEMPLATES: readonly NoticeTemplate[] = [
  // Exchange 5.5 to 2003: `ann@example.net on Thu, 29 Apr 2010 ...`
  {
    name: 'exchange',
    when: {
      text: /did not reach (?:the following recipient|some or all of the intended recipients)|following recipient\(s\) (?:could not|cannot) be reached/i,
    },
    start: /following recipient/i,
    recipient: [WITH_DATE, ALONE, ANGLED_FIRST],
  },
  // Exchange 2007 and later; the text differs by language, the links do not
  {
    name: 'exchange-delay',
    when: {
      subject: /^(?:delayed|delivery delayed|retard\u00e9|verz\u00f6gert)/i,
      text: /<mailto:|delivery to these recipients|has been delayed/i,
    },
    recipient: [MAILTO, WITH_REMARK, ALONE],
    action: 'delayed',
  },
  {
    name: 'exchange',
    when: { text: /<mailto:[^\s<>]{1,320}>/i, field: ['x-ms-exchange-message-is-ndr', /^/] },
    recipient: [MAILTO, ALONE],
  },
  {
    name: 'exchange',
    when: {
      text: /delivery has failed to these recipients|rejected your message to the following e-?mail addresses|couldn't be delivered to the following recipients|diagnostic information for administrators/i,
    },
    start: /following e-?mail addresses|these recipients|following recipients/i,
    recipient: [MAILTO, ALONE, WITH_REMARK, ANGLED_FIRST],
  },
  // Microsoft SMTP service: `Delivery to the following recipients failed.`
  {
    name: 'microsoft-smtp-delay',
    when: { text: /delivery to the following recipients? has been delayed/i },
    start: /following recipients?/i,
    recipient: [ALONE, ANGLED_FIRST],
    action: 'delayed',
  },
  {
    name: 'microsoft-smtp',
    when: { text: /delivery to the following recipients? failed/i },
    start: /delivery to the following recipients?/i,
    recipient: [ALONE, ANGLED_FIRST, WITH_COLON],
  },
  // Lotus Notes and Domino
  {
    name: 'notes',
    when: { text: /--- ?failure reasons/i },
    start: /failure reasons/i,
    recipient: [ALONE, ANGLED_FIRST],
  },
  {
    name: 'domino',
    when: { text: /was not delivered to:?|n'a pas \u00e9t\u00e9 remis|wurde nicht zugestellt an/i },
    start: /not delivered to|pas \u00e9t\u00e9 remis|nicht zugestellt an/i,
    recipient: [ALONE, ANGLED_FIRST, WITH_COLON],
  },
  // Novell GroupWise
  {
    name: 'groupwise',
    when: { field: ['x-mailer', /groupwise/i], subject: /undeliverable|status|fail/i },
    recipient: [WITH_REMARK, ALONE, ANGLED_FIRST, AT_END],
  },
]
