/** Blocks of the workspace that are kept under a name, to be inserted as copies. */
import type { components } from '#api/rest'
import { answer, answerTagged, ifMatch, rest } from '../../../api/client'
import { ApiFault } from '../../../api/fault'
import { tr } from '../../../i18n/i18n'
import { asFault } from '../../../state/loaded.svelte'
import { serialiseBlock, type Block } from '../document/document'

export type SavedBlock = components['schemas']['SavedBlockHead']
type Structure = components['schemas']['SavedBlockStructure']

/** A workspace has fewer. */
const MOST = 1_000

export class SavedBlocks {
  /** By name. */
  all = $state.raw<readonly SavedBlock[]>([])
  fault = $state.raw<ApiFault>()
  isKnown = $state(false)

  async load(): Promise<void> {
    try {
      const { data } = await answer(rest.GET('/saved-blocks', { params: { query: { limit: MOST } } }))
      this.all = data.toSorted((one, other) => one.name.localeCompare(other.name))
      this.fault = undefined
      this.isKnown = true
    } catch (error) {
      this.fault = asFault(error)
    }
  }

  named(name: string): SavedBlock | undefined {
    const wanted = name.trim().toLowerCase()
    return this.all.find(one => one.name.toLowerCase() === wanted)
  }

  /** @throws ApiFault */
  async read(id: string): Promise<Structure> {
    return (await this.readTagged(id)).body.data.json_structure
  }

  /** Under a name that is there, it replaces what is saved. @throws ApiFault */
  async save(name: string, block: Block): Promise<void> {
    // Documents are as free as JSON here; the API says what is wrong with them.
    const structure = { blocks: [serialiseBlock(block)] } as unknown as Structure
    const known = this.named(name)
    if (known) {
      const path = { id: known.id }
      await answer(
        rest.PATCH('/saved-blocks/{id}', { params: { path }, body: { json_structure: structure } }),
      )
    } else await this.create(name.trim(), structure)
    await this.load()
  }

  async create(name: string, structure: Structure): Promise<void> {
    await answer(rest.POST('/saved-blocks', { body: { name, json_structure: structure } }))
  }

  /** @returns its tag @throws ApiFault */
  async tagOf(id: string): Promise<string> {
    return (await this.readTagged(id)).etag
  }

  private readTagged(id: string) {
    return answerTagged(rest.GET('/saved-blocks/{id}', { params: { path: { id } } }))
  }

  /** @param etag of the version that was seen @throws ApiFault, too if another one has the name */
  async rename(id: string, name: string, etag: string): Promise<void> {
    await this.load()
    if (this.isTaken(name, id))
      throw new ApiFault('conflict', tr().templates.saved.taken(name.trim()), { status: 409, path: 'name' })
    const params = { path: { id }, header: ifMatch(etag) }
    try {
      await answer(rest.PATCH('/saved-blocks/{id}', { params, body: { name: name.trim() } }))
    } finally {
      await this.load()
    }
  }

  isTaken(name: string, exceptBy: string): boolean {
    const wanted = name.trim().toLowerCase()
    return this.all.some(one => one.id !== exceptBy && one.name.toLowerCase() === wanted)
  }

  /** @returns saves it again @throws ApiFault */
  async remove({ id }: SavedBlock): Promise<() => Promise<void>> {
    try {
      const { body, etag } = await this.readTagged(id)
      const { name, json_structure: structure } = body.data
      const params = { path: { id }, header: ifMatch(etag) }
      await answer(rest.DELETE('/saved-blocks/{id}', { params }))
      return () => this.create(name, structure)
    } finally {
      await this.load()
    }
  }
}
