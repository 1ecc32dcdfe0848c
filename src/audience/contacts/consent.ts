/** Why a contact gets no mail of campaigns and automations any more. Pure. */

export const CONSENT_REASONS = ['unsubscribed', 'bounced', 'deleted', 'left_list'] as const
export type ConsentReason = (typeof CONSENT_REASONS)[number]

/** A recipient of a campaign or automation as it is now. */
export interface Standing {
  readonly isDeleted: boolean
  readonly isSubscribed: boolean
  /** Unsubscribed only by a suppression. */
  readonly isSuspended: boolean
  readonly isBounced: boolean
}

/** @returns undefined if the contact may be mailed */
export function reasonAgainst({
  isDeleted,
  isSubscribed,
  isSuspended,
  isBounced,
}: Standing): 'suppressed' | ConsentReason | undefined {
  if (isDeleted) return 'deleted'
  if (isSuspended) return 'suppressed'
  if (!isSubscribed) return 'unsubscribed'
  return isBounced ? 'bounced' : undefined
}
