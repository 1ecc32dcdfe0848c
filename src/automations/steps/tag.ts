/** The step `tag`: adds a tag to the contact, creating it if missing, or removes it. The name may contain merge tags. */
import { ensureTags } from '../../audience/tags/ensure-tags.js'
import { findTag } from '../../audience/tags/tag-store.js'
import { tagSome } from '../../audience/tags/taggings.js'
import { actingOf } from './acting.js'
import { choice, type ConfigOf } from './config-fields.js'
import { mergeable, mergeLine, valuesFor } from './merged-text.js'
import { StepFault, type StepType, type Taking } from './step-type.js'

const MOST_TAG_NAME = 200

const fields = { action: choice('add', ['add', 'remove']), tagName: mergeable(200) }

type TagConfig = ConfigOf<typeof fields>

export const tag: StepType = {
  name: 'tag',
  fields,
  findFault: config =>
    Promise.resolve((config as TagConfig).tagName.trim() === '' ? 'has no tagName' : undefined),
  prepare: () =>
    Promise.resolve(async taking => {
      const { action, tagName } = taking.step.config as TagConfig
      const name = mergeLine(tagName, valuesFor(taking.run, taking.contact))
      if (name === '') return { kind: 'done', isSkipped: true, detail: { reason: 'tagName is empty' } }
      if (name.length > MOST_TAG_NAME)
        throw new StepFault(
          `tagName has ${name.length} characters after merging; at most ${MOST_TAG_NAME}`,
          {},
        )
      const changed = await (action === 'add' ? put(taking, name) : takeOff(taking, name))
      return { kind: 'done', isSkipped: changed === 0, detail: { [action]: name } }
    }),
}

async function put(taking: Taking, name: string): Promise<number> {
  const { parts, tx, run, contact, now } = taking
  const acting = actingOf(run)
  const made = (await ensureTags(tx, acting, [name], { at: now, newId: parts.newId }))(name)
  return tagSome(parts, tx, acting, made, [contact], 'added')
}

async function takeOff({ parts, tx, run, contact }: Taking, name: string): Promise<number> {
  const found = await findTag(tx.db, run.workspaceId, { name })
  return found ? tagSome(parts, tx, actingOf(run), found, [contact], 'removed') : 0
}
