/**
 * All rules for free-text bounces in the order in which they are asked; the first that finds a recipient wins.
 *
 * Read by the reader of returned mail. Data only.
 */
import type { NoticeForm } from './notice-form.js'
import { GATEWAY_FORMS } from './notice-forms-gateways.js'
import { GROUPWARE_FORMS } from './notice-forms-groupware.js'
import { PROVIDER_FORMS } from './notice-forms-providers.js'
import { UNIX_FORMS } from './notice-forms-unix.js'

/** A provider often runs one of the programs, so that its own words are asked for first. */
export const NOTICE_FORMS: readonly NoticeForm[] = [
  ...PROVIDER_FORMS,
  ...UNIX_FORMS,
  ...GATEWAY_FORMS,
  ...GROUPWARE_FORMS,
]
