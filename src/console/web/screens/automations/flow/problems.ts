/** What the check of a flow found, by the step it is about, and how it is said. Pure. */
import type { components } from '#api/rest'
import { tr } from '../../../i18n/i18n'

type Problem = components['schemas']['AutomationProblem']

export interface FoundProblem extends Omit<Problem, 'step_id' | 'position'> {
  /** Of the step; undefined: of the automation or its trigger. */
  readonly key: string | undefined
}

/** @param order keys of the steps as they were sent */
export function problemsIn(problems: readonly Problem[], order: readonly string[]): FoundProblem[] {
  return problems.map(({ code, severity, message, reason, field, position }) => ({
    code,
    severity,
    message,
    reason,
    field,
    key: position === null ? undefined : order[position],
  }))
}

/**
 * What a refused check says: a value that the API does not take is a problem of its step.
 *
 * @returns undefined if it was refused for another reason, or not answered
 */
export function problemsOfRefusal(
  {
    code,
    message,
    path = '',
  }: { readonly code: string; readonly message: string; readonly path?: string | undefined },
  order: readonly string[],
): FoundProblem[] | undefined {
  if (code !== 'validation_error') return undefined
  const at = /^steps\.(\d+)\./.exec(path)?.[1]
  if (at === undefined)
    return [
      { code: 'invalid_trigger', severity: 'error', message, reason: null, field: null, key: undefined },
    ]
  return [
    { code: 'invalid_step', severity: 'error', message, reason: null, field: null, key: order[Number(at)] },
  ]
}

/** What a person reads; the API's own text, which is English, only where the API names no reason. */
export function problemText({ code, reason, field, message }: FoundProblem): string {
  const texts = tr().automations.faults
  if (code !== 'invalid_step' && code !== 'invalid_trigger') return texts[code]
  if (reason === null) return message
  const ofField = reason === 'missing' ? texts.missing : reason === 'unknown' ? texts.unknown : undefined
  if (ofField) return ofField[field ?? ''] ?? texts.otherField
  return texts.reasons[reason] ?? texts.otherField
}
