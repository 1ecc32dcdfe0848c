/**
 * What a mail that is still to be filled in takes along: the workspace's own words, what it is filled from, whether it gets a footer.
 *
 * Made where mail is accepted, stored with its content as JSON, read in the delivery threads. Pure. Fails: never throws.
 */
import type { MergeContact } from '../merge/merge-values.js'
import type { Tracked } from '../tracking/track-template.js'

export type MergeData = Readonly<Record<string, unknown>>

/** What a workspace says of itself in its mail, as it was when the mail was accepted. */
export interface MailBrand {
  /** Empty where there is none. */
  readonly companyName: string
  readonly companyAddress: string
  /** Whether the footer says what sent the mail. */
  readonly attribution: boolean
  /** IANA name. */
  readonly timezone: string
}

/** As a workspace has them set. */
export interface BrandSettings extends Pick<MailBrand, 'attribution' | 'timezone'> {
  readonly companyName: string | null
  readonly companyAddress: string | null
}

export function brandOf({ companyName, companyAddress, attribution, timezone }: BrandSettings): MailBrand {
  return { companyName: companyName ?? '', companyAddress: companyAddress ?? '', attribution, timezone }
}

/** The system tags that a brand fills. */
export function brandTags({ companyName, companyAddress }: MailBrand) {
  return { company_name: companyName, company_address: companyAddress }
}

/** The same for all recipients of a content. */
export interface Merging {
  readonly brand: MailBrand
  /** HTML gets the compliance footer. */
  readonly hasFooter: boolean
  /** `template_data` of the request. */
  readonly data?: MergeData
  /** Absent where neither opens nor clicks are counted. */
  readonly tracking?: Tracked
}

/** What one recipient has of its own. */
export interface OwnValues {
  /** As it was when the delivery began; absent where the address is no contact's. */
  readonly contact?: MergeContact
  /** Goes before what the content has for all. */
  readonly data?: MergeData
}
