/**
 * Warnings about valid conditions of an automation that look like mistakes, as segments give them (`audience/segments/warnings.ts`).
 *
 * Used by the check of an automation, and by answers to whoever saves one. Never keeps one from becoming active.
 */
import { warningsOf } from '../../audience/segments/warnings.js'
import type { FlowParts } from '../automation-parts.js'
import { conditionsOfStep } from '../steps/condition.js'
import type { Automation, Step } from './automation.js'
import { findProblems, type Problem } from './check-flow.js'

/** Steps looked at; each reads some contacts. */
const MAX_CHECKED = 20

/** Everything strange about a stored automation, errors left out: an automation that is not active may have them. */
export async function findWarnings(
  parts: FlowParts,
  automation: Automation,
  steps: readonly Step[],
): Promise<Problem[]> {
  const problems = await findProblems(parts, parts.database.reader, automation, steps)
  const conditions = await findConditionWarnings(parts, automation, steps, problems)
  return [...problems.filter(({ isWarning }) => isWarning), ...conditions]
}

/** @param problems found so far; steps that have an error are left out */
export async function findConditionWarnings(
  parts: Pick<FlowParts, 'database' | 'clock'>,
  { workspaceId, triggerConfig: { conditions } }: Automation,
  steps: readonly Step[],
  problems: readonly Problem[],
): Promise<Problem[]> {
  const found: Problem[] = []
  const add = (step: Step | null, fault: string) =>
    found.push({ step, code: 'strange_condition', fault, isWarning: true })
  if (conditions)
    for (const { message } of await warningsOf(parts, workspaceId, conditions))
      add(null, `the trigger has a condition that looks like a mistake: ${message}`)
  const isSound = (step: Step) => !problems.some(problem => problem.step === step && !problem.isWarning)
  const checked = steps.flatMap(step => {
    const asked = conditionsOfStep(step)
    return asked && isSound(step) ? [{ step, asked }] : []
  })
  for (const { step, asked } of checked.slice(0, MAX_CHECKED))
    for (const { message } of await warningsOf(parts, workspaceId, asked))
      add(step, `has a condition that looks like a mistake: ${message}`)
  return found
}
