/** All step types by name. */
import type { StepTypeName } from '../flows/automation.js'
import { condition } from './condition.js'
import { optional, reference, type Field } from './config-fields.js'
import { delay, waitForEvent } from './wait.js'
import { email } from './email.js'
import { addToList, removeFromList, tag, updateAttribute } from './change-contact.js'
import { moveToFlow } from './move-to-flow.js'
import type { StepType } from './step-type.js'
import { webhook } from './webhook.js'

const nextStepId = {
  ...optional(reference() as Field<string>),
  expected: 'the id of a step, `end` or null',
}

/** A step after which the run may continue elsewhere than with the step that follows. */
function leading(type: StepType): StepType {
  return {
    ...type,
    fields: { ...type.fields, nextStepId },
    branches: [...(type.branches ?? []), 'nextStepId'],
  }
}

export const STEP_TYPE: Readonly<Record<StepTypeName, StepType>> = {
  email: leading(email),
  delay: leading(delay),
  condition,
  tag: leading(tag),
  add_to_list: leading(addToList),
  remove_from_list: leading(removeFromList),
  update_attribute: leading(updateAttribute),
  webhook: leading(webhook),
  wait_for_event: leading(waitForEvent),
  move_to_flow: leading(moveToFlow),
}
