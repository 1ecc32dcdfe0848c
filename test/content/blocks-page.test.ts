/** docs/blocks.md and the API description match the block schemas. */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readStructure } from '../../src/content/blocks/read-structure.js'
import { BLOCK_TYPES } from '../../src/content/blocks/structure.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { blocksPage, exampleBlock, PAGE, PICTURES } from './blocks-page.js'

t.test('the page on disk is what is generated (node build/test/content/write-blocks-page.js)', async t => {
  t.equal(readFileSync(PAGE, 'utf8'), blocksPage())
})

t.test('every block has a picture of at most 20 KB', async t => {
  for (const type of BLOCK_TYPES) {
    const picture = join(PICTURES, `${type}.png`)
    t.ok(
      existsSync(picture) && statSync(picture).size < 20_000,
      `${type}: node build/test/content/write-block-pictures.js`,
    )
  }
})

t.test('the examples are valid', async t => {
  t.doesNotThrow(() => readStructure({ blocks: BLOCK_TYPES.map(exampleBlock) }))
})

interface Schema {
  readonly $ref?: string
  readonly additionalProperties?: boolean
  readonly oneOf?: readonly { readonly $ref: string }[]
  readonly discriminator?: {
    readonly propertyName: string
    readonly mapping: Readonly<Record<string, string>>
  }
  readonly properties: Readonly<Record<string, Schema & { readonly const?: string; readonly items?: Schema }>>
}

t.test('the API describes every block by name and type, nested blocks included', async t => {
  const postroad = await openTestAppliance(t)
  const { components } = (await postroad.get('/openapi.json')).body as {
    components: { schemas: Readonly<Record<string, Schema>> }
  }
  const at = (ref = '') => components.schemas[ref.replace('#/components/schemas/', '')]
  const block = components.schemas['TemplateBlock']
  t.match(at('TemplateStructure')?.properties['blocks']?.items, {
    $ref: '#/components/schemas/TemplateBlock',
  })
  for (const name of ['NewTemplate', 'Template'])
    t.match(JSON.stringify(at(name)?.properties['json_structure']), '#/components/schemas/TemplateStructure')
  t.equal(block?.oneOf?.length, 14)
  t.equal(block?.discriminator?.propertyName, 'type')
  for (const type of BLOCK_TYPES) {
    const one = at(block?.discriminator?.mapping[type])
    t.equal(one?.properties['type']?.const, type)
    const content = at(one?.properties['content']?.$ref)
    t.equal(content?.additionalProperties, false, `${type}: unknown fields are refused`)
  }
  t.match(at('DropshadowBlockContent')?.properties['blocks']?.items, {
    $ref: '#/components/schemas/TemplateBlock',
  })
})
