/**
 * Classifier rules by code, for replies whose text matched no other rule.
 *
 * Enhanced codes are more specific and come first.
 */
import type { ReplyRule } from './classify-subtypes.js'

/** By enhanced code (RFC 3463 §3, RFC 5248 registry). */
const ENHANCED_RULES: readonly ReplyRule[] = [
  // RFC 3463 §3.2: address status
  { enhanced: /^.\.1\.[01]$/, subtype: 'no_such_mailbox', unless: /sender|from/ },
  { enhanced: /^.\.1\.2$/, subtype: 'bad_destination' },
  { enhanced: /^.\.1\.3$/, subtype: 'bad_address_syntax' },
  { enhanced: /^.\.1\.4$/, subtype: 'no_such_mailbox' },
  { enhanced: /^.\.1\.6$/, subtype: 'mailbox_moved' },
  { enhanced: /^.\.1\.[078]$/, subtype: 'sender_refused' },
  // RFC 7505 §4.2: 5.1.10 for a null MX (Exchange uses it for unknown recipients, with a text), 5.7.27 for a sender
  // without MX
  { enhanced: /^.\.1\.10$/, subtype: 'domain_accepts_no_mail' },
  { enhanced: /^5\.7\.27$/, subtype: 'sender_refused' },
  // RFC 3463 §3.3: mailbox status
  { enhanced: /^4\.2\.1$/, subtype: 'mailbox_unavailable' },
  { enhanced: /^5\.2\.1$/, subtype: 'mailbox_disabled' },
  { enhanced: /^.\.2\.2$/, subtype: 'mailbox_full' },
  { enhanced: /^.\.2\.3$/, subtype: 'message_too_big' },
  { enhanced: /^4\.2\./, subtype: 'mailbox_unavailable' },
  { enhanced: /^5\.2\./, subtype: 'recipient_refused' },
  // RFC 3463 §3.4: mail system status
  { enhanced: /^.\.3\.1$/, subtype: 'system_full' },
  // RFC 7504 §3: a host that accepts no mail, whatever the enhanced code
  { enhanced: /^5\.3\.2$/, code: /^(?:521|556)$/, subtype: 'domain_accepts_no_mail' },
  { enhanced: /^.\.3\.2$/, subtype: 'server_busy' },
  { enhanced: /^.\.3\.4$/, subtype: 'message_too_big' },
  { enhanced: /^.\.3\./, subtype: 'system_failure' },
  // RFC 3463 §3.5: network and routing status
  { enhanced: /^.\.4\.6$/, subtype: 'routing_loop' },
  { enhanced: /^.\.4\.5$/, subtype: 'server_busy' },
  { enhanced: /^.\.4\./, subtype: 'network_failure' },
  // RFC 3463 §3.6: protocol status
  { enhanced: /^.\.5\.3$/, subtype: 'too_many_recipients' },
  { enhanced: /^.\.5\./, subtype: 'protocol_error' },
  // RFC 3463 §3.7: content status
  // RFC 6531 §4.2 (and X.6.8 to X.6.10 of the registry), RFC 6152 §3: missing extensions
  { enhanced: /^.\.6\.(?:7|8|9|10)$/, subtype: 'smtputf8_unsupported' },
  { enhanced: /^.\.6\.3$/, subtype: '8bitmime_unsupported' },
  { enhanced: /^.\.6\./, subtype: 'content_refused' },
  // RFC 3463 §3.8 and the registry: security and policy status
  { enhanced: /^.\.7\.(?:8|9)$/, code: /^53/, subtype: 'authentication_failed' },
  { enhanced: /^.\.7\.(?:10|11)$/, subtype: 'tls_required' },
  { enhanced: /^.\.7\.13$/, subtype: 'mailbox_disabled' },
  // RFC 7372 §3: DKIM, SPF, reverse DNS, multiple checks; 5.7.9 means DMARC at several large sites
  { enhanced: /^.\.7\.(?:20|21|22|23|24|26|9)$/, subtype: 'authentication_policy' },
  { enhanced: /^.\.7\.25$/, subtype: 'reverse_dns' },
  { enhanced: /^.\.7\.28$/, subtype: 'rate_limited', code: /^4/ },
  { enhanced: /^.\.7\.28$/, subtype: 'bad_reputation' },
  { enhanced: /^4\.7\./, subtype: 'rate_limited' },
  { enhanced: /^.\.7\./, subtype: 'policy_refused' },
]

/** By reply code (RFC 5321 §4.2.3). */
const REPLY_CODE_RULES: readonly ReplyRule[] = [
  { code: /^421$/, subtype: 'server_busy' },
  { code: /^450$/, subtype: 'mailbox_unavailable' },
  { code: /^451$/, subtype: 'system_failure' },
  { code: /^452$/, subtype: 'system_full' },
  { code: /^(?:454|538)$/, subtype: 'tls_required' },
  { code: /^50[0-4]$/, subtype: 'protocol_error' },
  // RFC 7504 §3 and §4: 521 from the host itself, 556 from a relay
  { code: /^(?:521|556)$/, subtype: 'domain_accepts_no_mail' },
  { code: /^530$/, subtype: 'authentication_required' },
  { code: /^53[45]$/, subtype: 'authentication_failed' },
  { code: /^551$/, subtype: 'mailbox_moved' },
  { code: /^552$/, subtype: 'mailbox_full', stage: ['rcpt'] },
  { code: /^552$/, subtype: 'message_too_big', stage: ['mail', 'data', 'final_dot'] },
  { code: /^4/, subtype: 'unclassified_delay' },
  { code: /^$/, enhanced: /^4/, subtype: 'unclassified_delay' },
]

export const CODE_RULES: readonly ReplyRule[] = [...ENHANCED_RULES, ...REPLY_CODE_RULES]
