/** Step types that change the contact: `tag`, `add_to_list`, `remove_from_list` and `update_attribute`. */
import { changeSome, findStaticList } from '../../audience/lists/lists.js'
import { AppError } from '../../core/errors.js'
import { actingFor, type StepType, StepError, type StepExecution } from './step-type.js'
import { reference, type ConfigOf, choice, text } from './config-fields.js'
import { ensureTags, tagSome } from '../../audience/tags/tags.js'
import { findTag } from '../../audience/tags/tag-store.js'
import { mergeable, mergeLine, valuesFor, merge } from './merged-text.js'
import { checkAttributes, checkText } from '../../audience/checks.js'
import { changeContact, type ContactPatch } from '../../audience/contacts/contacts.js'
import { missing, unknown } from '../flows/flow-fault.js'

const MAX_TAG_NAME = 200

const tagFields = { action: choice('add', ['add', 'remove']), tagName: mergeable(MAX_TAG_NAME) }

type TagConfig = ConfigOf<typeof tagFields>

export const tag: StepType = {
  name: 'tag',
  fields: tagFields,
  findFault: config =>
    Promise.resolve((config as TagConfig).tagName.trim() === '' ? missing('tagName') : undefined),
  prepare: () =>
    Promise.resolve(async execution => {
      const { action, tagName } = execution.step.config as TagConfig
      const name = mergeLine(tagName, valuesFor(execution.run, execution.contact))
      if (name === '') return { kind: 'done', isSkipped: true, detail: { reason: 'tagName is empty' } }
      if (name.length > MAX_TAG_NAME)
        throw new StepError(
          `tagName has ${name.length} characters after merging; the limit is ${MAX_TAG_NAME}`,
          {},
        )
      const changed = await (action === 'add' ? addTag(execution, name) : removeTag(execution, name))
      return { kind: 'done', isSkipped: changed === 0, detail: { [action]: name } }
    }),
}

async function addTag(execution: StepExecution, name: string): Promise<number> {
  const { parts, tx, run, contact, now } = execution
  const acting = actingFor(run)
  const created = (await ensureTags(tx, acting, [name], { at: now, newId: parts.newId }))(name)
  return (await tagSome(parts, tx, acting, created, [contact], 'added')).size
}

async function removeTag({ parts, tx, run, contact }: StepExecution, name: string): Promise<number> {
  const found = await findTag(tx.db, run.workspaceId, { name })
  return found ? (await tagSome(parts, tx, actingFor(run), found, [contact], 'removed')).size : 0
}

const listFields = { listId: reference() }

type ListConfig = ConfigOf<typeof listFields>

function listStep(name: 'add_to_list' | 'remove_from_list'): StepType {
  const change = name === 'add_to_list' ? 'added' : 'removed'
  return {
    name,
    fields: listFields,
    async findFault(config, { db, automation }) {
      const { listId } = config as ListConfig
      if (listId === null) return missing('listId')
      try {
        await findStaticList(db, automation.workspaceId, listId)
        return undefined
      } catch (error) {
        if (!(error instanceof AppError)) throw error
        return error.code === 'conflict'
          ? {
              reason: 'dynamic_list',
              field: 'listId',
              text: 'refers to a dynamic list; its conditions decide who is a member',
            }
          : unknown('listId', 'a list')
      }
    },
    prepare: () =>
      Promise.resolve(async ({ parts, tx, step, run, contact }) => {
        const { listId } = step.config as ListConfig
        const list = await findStaticList(tx.db, run.workspaceId, listId ?? '')
        const changed = await changeSome(parts, tx, actingFor(run), list, [contact], change)
        return { kind: 'done', isSkipped: changed.size === 0, detail: { list_id: list.id } }
      }),
  }
}

export const addToList = listStep('add_to_list')
export const removeFromList = listStep('remove_from_list')

const MAX_NAME = 100
const MAX_VALUE = 1_000

const attributeFields = { attributeName: text(120), attributeValue: mergeable(MAX_VALUE) }

type AttributeConfig = ConfigOf<typeof attributeFields>

/** @throws AppError validation_error */
function attributePatch({ attributeName }: AttributeConfig, value: string): ContactPatch {
  const name = attributeName.trim().replace(/^attributes\./, '')
  if (name === 'first_name' || name === 'firstName')
    return { firstName: checkText(name, value.slice(0, MAX_NAME)) ?? null }
  if (name === 'last_name' || name === 'lastName')
    return { lastName: checkText(name, value.slice(0, MAX_NAME)) ?? null }
  checkAttributes({ [name]: value })
  return { attributes: { [name]: value } }
}

export const updateAttribute: StepType = {
  name: 'update_attribute',
  fields: attributeFields,
  findFault: config =>
    Promise.resolve(
      (config as AttributeConfig).attributeName.trim() === '' ? missing('attributeName') : undefined,
    ),
  prepare: ({ step }) => {
    const config = step.config as AttributeConfig
    return Promise.resolve(async ({ parts, tx, run, contact }) => {
      const value = merge(config.attributeValue, valuesFor(run, contact))
      if (value.length > MAX_VALUE)
        throw new StepError(
          `attributeValue has ${value.length} characters after merging; the limit is ${MAX_VALUE}`,
          {},
        )
      await changeContact(parts, tx, actingFor(run), contact.id, attributePatch(config, value))
      return { kind: 'done', detail: { [config.attributeName]: value } }
    })
  },
}
