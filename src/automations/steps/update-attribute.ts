/** The step `update_attribute`: writes one attribute of the contact, or its first or last name. The value may have merge tags. */
import { checkAttributes, checkText } from '../../audience/checks.js'
import { changeContact, type ContactPatch } from '../../audience/contacts/contacts.js'
import { actingOf } from './acting.js'
import { text, type ConfigOf } from './config-fields.js'
import { merge, mergeable, valuesFor } from './merged-text.js'
import { StepFault, type StepType } from './step-type.js'

const MOST_NAME = 100
const MOST_VALUE = 1_000

const fields = { attributeName: text(120), attributeValue: mergeable(MOST_VALUE) }

type AttributeConfig = ConfigOf<typeof fields>

/** @throws AppError validation_error */
function patchOf(
  { attributeName }: Pick<AttributeConfig, 'attributeName'>,
  attributeValue: string,
): ContactPatch {
  const name = attributeName.trim().replace(/^attributes\./, '')
  if (name === 'first_name' || name === 'firstName')
    return { firstName: checkText(name, attributeValue.slice(0, MOST_NAME)) ?? null }
  if (name === 'last_name' || name === 'lastName')
    return { lastName: checkText(name, attributeValue.slice(0, MOST_NAME)) ?? null }
  checkAttributes({ [name]: attributeValue })
  return { attributes: { [name]: attributeValue } }
}

export const updateAttribute: StepType = {
  name: 'update_attribute',
  fields,
  findFault: config =>
    Promise.resolve(
      (config as AttributeConfig).attributeName.trim() === '' ? 'has no attributeName' : undefined,
    ),
  prepare: ({ step }) => {
    const config = step.config as AttributeConfig
    return Promise.resolve(async ({ parts, tx, run, contact }) => {
      const value = merge(config.attributeValue, valuesFor(run, contact))
      if (value.length > MOST_VALUE)
        throw new StepFault(
          `attributeValue has ${value.length} characters after merging; at most ${MOST_VALUE}`,
          {},
        )
      await changeContact(parts, tx, actingOf(run), contact.id, patchOf(config, value))
      return { kind: 'done', detail: { [config.attributeName]: value } }
    })
  },
}
