/** All free-text bounces of the tests and the fuzzer. */
import type { NoticeCase } from './notice-case.js'
import { PRODUCT_NOTICES } from './notices-products.js'
import { PROVIDER_NOTICES } from './notices-providers.js'
import { UNIX_NOTICES } from './notices-unix.js'

export const NOTICES: readonly NoticeCase[] = [...UNIX_NOTICES, ...PRODUCT_NOTICES, ...PROVIDER_NOTICES]
