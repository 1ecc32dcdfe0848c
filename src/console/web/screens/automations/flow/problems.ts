/** What the check of a flow found, by the step it is about. Pure. */
import type { components } from '#api/rest'

type Problem = components['schemas']['AutomationProblem']

export interface FoundProblem extends Omit<Problem, 'step_id' | 'position'> {
  /** Of the step; undefined: of the automation or its trigger. */
  readonly key: string | undefined
}

/** @param order keys of the steps as they were sent */
export function problemsIn(problems: readonly Problem[], order: readonly string[]): FoundProblem[] {
  return problems.map(({ code, severity, message, position }) => ({
    code,
    severity,
    message,
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
  if (at === undefined) return [{ code: 'invalid_trigger', severity: 'error', message, key: undefined }]
  return [{ code: 'invalid_step', severity: 'error', message, key: order[Number(at)] }]
}
