/** All step types by name. */
import type { StepTypeName } from '../flows/automation.js'
import { condition } from './condition.js'
import { delay, waitForEvent } from './wait.js'
import { email } from './email.js'
import { addToList, removeFromList, tag, updateAttribute } from './change-contact.js'
import { moveToFlow } from './move-to-flow.js'
import type { StepType } from './step-type.js'
import { webhook } from './webhook.js'

export const STEP_TYPE: Readonly<Record<StepTypeName, StepType>> = {
  email,
  delay,
  condition,
  tag,
  add_to_list: addToList,
  remove_from_list: removeFromList,
  update_attribute: updateAttribute,
  webhook,
  wait_for_event: waitForEvent,
  move_to_flow: moveToFlow,
}
