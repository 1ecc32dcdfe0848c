/**
 * Merge settings of an accepted mail: the workspace's brand, template_data, footer and tracking.
 *
 * Created on acceptance, stored with the content as JSON, read in the delivery threads. Pure. Never throws.
 */
import type { MergeContact } from '../merge/merge-values.js'
import type { TrackingOptions } from '../tracking/track-template.js'

export type MergeData = Readonly<Record<string, unknown>>

export interface MailBrand {
  /** Empty if unset. */
  readonly companyName: string
  readonly companyAddress: string
  readonly attribution: boolean
  /** IANA name. */
  readonly timezone: string
}

export interface BrandSettings extends Pick<MailBrand, 'attribution' | 'timezone'> {
  readonly companyName: string | null
  readonly companyAddress: string | null
}

export function brandOf({ companyName, companyAddress, attribution, timezone }: BrandSettings): MailBrand {
  return { companyName: companyName ?? '', companyAddress: companyAddress ?? '', attribution, timezone }
}

export function brandTags({ companyName, companyAddress }: MailBrand) {
  return { company_name: companyName, company_address: companyAddress }
}

/** Shared by all recipients of a content. */
export interface Merging {
  readonly brand: MailBrand
  readonly hasFooter: boolean
  /** `template_data` of the request. */
  readonly data?: MergeData
  /** Absent if neither opens nor clicks are tracked. */
  readonly tracking?: TrackingOptions
}

export interface RecipientValues {
  /** As of the start of delivery; absent if no contact has the address. */
  readonly contact?: MergeContact
  /** Overrides the content's data. */
  readonly data?: MergeData
}
