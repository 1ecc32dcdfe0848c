/**
 * All rules for free-text bounces in the order in which they are asked; the first that finds a recipient wins.
 *
 * Read by the reader of returned mail. Data only.
 */
import type { NoticeTemplate } from './notice-form.js'
import { GATEWAY_TEMPLATES } from './notice-forms-gateways.js'
import { GROUPWARE_TEMPLATES } from './notice-forms-groupware.js'
import { PROVIDER_TEMPLATES } from './notice-forms-providers.js'
import { UNIX_TEMPLATES } from './notice-forms-unix.js'

/** A provider often runs one of the programs, so that its own words are asked for first. */
export const NOTICE_TEMPLATES: readonly NoticeTemplate[] = [
  ...PROVIDER_TEMPLATES,
  ...UNIX_TEMPLATES,
  ...GATEWAY_TEMPLATES,
  ...GROUPWARE_TEMPLATES,
]
