/** The table of step types: one file each. */
import type { StepTypeName } from '../flows/automation.js'
import { condition } from './condition.js'
import { delay } from './delay.js'
import { email } from './email.js'
import { addToList, removeFromList } from './list-member.js'
import { moveToFlow } from './move-to-flow.js'
import type { StepType } from './step-type.js'
import { tag } from './tag.js'
import { updateAttribute } from './update-attribute.js'
import { waitForEvent } from './wait-for-event.js'
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
