/** What is edited of an A/B test, and the request that stores it. */
import type { components } from '#api/rest'

export type AbTest = components['schemas']['AbTest']
export type AbTestResult = components['schemas']['AbTestResult']
export type VariantName = AbTestResult['variants'][number]['id']

export const VARIANT_NAMES = ['A', 'B', 'C', 'D'] as const satisfies readonly VariantName[]
export const DIFFERENCES = ['subject', 'template', 'sender'] as const
export type Difference = (typeof DIFFERENCES)[number]

/** Empty fields are as in the campaign. */
export interface VariantDraft {
  readonly subject: string
  readonly templateId: string
  readonly fromEmail: string
  readonly fromName: string
}

const TIME_UNITS = { minutes: 1, hours: 60, days: 1_440 } as const
export type TimeUnit = keyof typeof TIME_UNITS

export interface AbTestDraft {
  readonly differs: readonly Difference[]
  readonly variants: readonly VariantDraft[]
  readonly sample: string
  readonly sampleUnit: 'percent' | 'people'
  readonly metric: 'clicks' | 'opens'
  readonly decision: 'rule' | 'person'
  readonly after: string
  readonly afterUnit: TimeUnit
  readonly ifUnclear: 'best' | 'manual'
}

export const NO_DIFFERENCE: VariantDraft = { subject: '', templateId: '', fromEmail: '', fromName: '' }

export const NEW_TEST: AbTestDraft = {
  differs: ['subject'],
  variants: [NO_DIFFERENCE, NO_DIFFERENCE],
  sample: '20',
  sampleUnit: 'percent',
  metric: 'clicks',
  decision: 'rule',
  after: '4',
  afterUnit: 'hours',
  ifUnclear: 'best',
}

export function testDraftOf(test: AbTest | null): AbTestDraft | null {
  if (!test) return null
  const variants = test.variants.map(one => ({
    subject: one.subject ?? '',
    templateId: one.template_id ?? '',
    fromEmail: one.from_email ?? '',
    fromName: one.from_name ?? '',
  }))
  const minutes = test.decide_after_minutes ?? null
  const units = ['days', 'hours', 'minutes'] as const
  const unit = units.find(one => minutes !== null && minutes % TIME_UNITS[one] === 0) ?? 'hours'
  return {
    differs: DIFFERENCES.filter(one => variants.some(variant => saysOwn(variant, one))),
    variants,
    sample: String(test.sample_percent ?? test.sample_size ?? ''),
    sampleUnit: typeof test.sample_size === 'number' ? 'people' : 'percent',
    metric: test.metric ?? 'clicks',
    decision: minutes === null ? 'person' : 'rule',
    after: minutes === null ? NEW_TEST.after : String(minutes / TIME_UNITS[unit]),
    afterUnit: minutes === null ? 'hours' : unit,
    ifUnclear: test.if_unclear ?? 'best',
  }
}

function saysOwn(variant: VariantDraft, difference: Difference): boolean {
  if (difference === 'subject') return variant.subject !== ''
  if (difference === 'template') return variant.templateId !== ''
  return variant.fromEmail !== '' || variant.fromName !== ''
}

export function testOf(draft: AbTestDraft | null): AbTest | null {
  if (!draft) return null
  const has = (one: Difference) => draft.differs.includes(one)
  const sample = Number(draft.sample)
  return {
    variants: draft.variants.map(one => ({
      subject: has('subject') ? one.subject.trim() || null : null,
      template_id: has('template') ? one.templateId || null : null,
      from_email: has('sender') ? one.fromEmail.trim() || null : null,
      from_name: has('sender') ? one.fromName.trim() || null : null,
    })),
    ...(draft.sampleUnit === 'percent' ? { sample_percent: sample } : { sample_size: sample }),
    metric: draft.metric,
    decide_after_minutes:
      draft.decision === 'person' ? null : Math.round(Number(draft.after) * TIME_UNITS[draft.afterUnit]),
    if_unclear: draft.ifUnclear,
  }
}

/** How many of so many recipients get each variant, as the server divides them. */
export function sizesOf({ variants, sample, sampleUnit }: AbTestDraft, recipients: number): number[] {
  const count = Number(sample) || 0
  const asked = sampleUnit === 'percent' ? Math.ceil((recipients * count) / 100) : count
  const size = Math.min(recipients, Math.max(asked, variants.length))
  const even = Math.floor(size / variants.length)
  return variants.map((_, at) => even + (at < size % variants.length ? 1 : 0))
}
