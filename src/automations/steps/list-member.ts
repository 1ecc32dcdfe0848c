/** The steps `add_to_list` and `remove_from_list`: the contact gets into a static list, or out of it. */
import { changeSome } from '../../audience/lists/members.js'
import { findStaticList } from '../../audience/lists/static-list.js'
import { AppError } from '../../core/errors.js'
import { actingOf } from './acting.js'
import { reference, type ConfigOf } from './config-fields.js'
import type { StepType } from './step-type.js'

const fields = { listId: reference() }

function listStep(name: 'add_to_list' | 'remove_from_list'): StepType {
  const change = name === 'add_to_list' ? 'added' : 'removed'
  return {
    name,
    fields,
    async findFault(config, { db, automation }) {
      const { listId } = config as ConfigOf<typeof fields>
      if (listId === null) return 'has no listId'
      try {
        await findStaticList(db, automation.workspaceId, listId)
        return undefined
      } catch (error) {
        if (!(error instanceof AppError)) throw error
        return error.code === 'conflict'
          ? 'names a dynamic list, whose members its conditions tell'
          : 'names a list that is not there'
      }
    },
    prepare: () =>
      Promise.resolve(async ({ parts, tx, step, run, contact }) => {
        const { listId } = step.config as ConfigOf<typeof fields>
        const list = await findStaticList(tx.db, run.workspaceId, listId ?? '')
        const changed = await changeSome(parts, tx, actingOf(run), list, [contact], change)
        return { kind: 'done', isSkipped: changed === 0, detail: { list_id: list.id } }
      }),
  }
}

export const addToList = listStep('add_to_list')
export const removeFromList = listStep('remove_from_list')
