/** What the last dialog before sending says: whom it reaches at once, and what the check found. Pure. */
import { sizesOf, type AbTestDraft } from './ab-test'
import type { CampaignCheck } from './campaigns'

export interface Reach {
  /** Who gets mail at once: everybody, or the sample of the A/B test. */
  readonly first: number
  /** Who gets the winner later. */
  readonly later: number
}

export function reachOf(test: AbTestDraft | null, mailable: number): Reach {
  const first = test ? sizesOf(test, mailable).reduce((sum, size) => sum + size, 0) : mailable
  return { first, later: mailable - first }
}

export type Verdict =
  | 'unchecked'
  | 'running'
  | 'failed'
  /** The draft was changed since. */
  | 'stale'
  | 'errors'
  | 'warnings'
  | 'fine'

/** @param changedAt when the draft was last saved */
export function verdictOf(check: CampaignCheck | undefined, changedAt: string): Verdict {
  if (!check) return 'unchecked'
  if (check.status === 'running') return 'running'
  if (check.status === 'failed') return 'failed'
  if (changedAt > check.started_at) return 'stale'
  return check.errors > 0 ? 'errors' : check.warnings > 0 ? 'warnings' : 'fine'
}

/** Codes of the errors, each once. */
export function errorsIn(check: CampaignCheck | undefined): CampaignCheck['findings'][number]['code'][] {
  const errors = (check?.findings ?? []).filter(({ severity }) => severity === 'error')
  return [...new Set(errors.map(({ code }) => code))]
}

/** `Shop <news@shop.test>`; empty if neither the draft nor the workspace names an address. */
export function senderOf(
  draft: { readonly fromEmail: string; readonly fromName: string },
  workspace:
    | { readonly default_from_email: string | null; readonly default_from_name: string | null }
    | undefined,
): string {
  const email = draft.fromEmail.trim() || (workspace?.default_from_email ?? '')
  const name = draft.fromName.trim() || (workspace?.default_from_name ?? '')
  return email === '' || name === '' || email.includes('<') ? email : `${name} <${email}>`
}
