/**
 * All templates for free-text bounces, in order; the first that finds a recipient wins.
 */
import {
  ALONE,
  ANGLED_FIRST,
  AT_END,
  AT_START,
  MAILTO,
  NAMED,
  type NoticeTemplate,
  TO_LINE,
  TRANSCRIPT,
  WITH_COLON,
  WITH_DATE,
  WITH_REMARK,
  WITH_SEMICOLON,
} from './template.js'
import { GATEWAY_TEMPLATES } from './templates-gateways.js'
import { GROUPWARE_TEMPLATES } from './templates-groupware.js'
import { PROVIDER_TEMPLATES } from './templates-providers.js'
import { UNIX_TEMPLATES } from './templates-unix.js'

/** Providers first, since many run one of the other programs. */
export const NOTICE_TEMPLATES: readonly NoticeTemplate[] = [
  ...PROVIDER_TEMPLATES,
  ...UNIX_TEMPLATES,
  ...GATEWAY_TEMPLATES,
  ...GROUPWARE_TEMPLATES,
]

export const GENERAL_TEMPLATE: NoticeTemplate = {
  name: 'general',
  when: {},
  recipient: [
    TRANSCRIPT,
    ANGLED_FIRST,
    ALONE,
    MAILTO,
    NAMED,
    WITH_DATE,
    WITH_COLON,
    WITH_SEMICOLON,
    WITH_REMARK,
    AT_END,
    AT_START,
  ],
}

/** Used if nobody is said to have failed: the recipient of the quoted message. */
export const FALLBACK_TEMPLATE: NoticeTemplate = { name: 'general', when: {}, recipient: [TO_LINE] }
