/** Random documents of the block editor, the same for the same seed. */

/** @returns an integer from 0, below the limit */
export type Random = (limit: number) => number

/** A linear congruential generator. */
export function randomOf(seed: number): Random {
  let state = seed * 2_654_435_761
  return limit => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * limit)
  }
}

interface Options {
  /** Whether there are properties, spellings and types that this version does not know. Without them, the API accepts the document. */
  readonly isForeign: boolean
}

const WORDS = ['Hello', '{{first_name|there}}', 'sale', '<b>bold</b>', 'Grüße', '“quoted”', '&amp;', '🎉', '']
const COLOURS = ['#fff', '#2563eb', '#000000']

export function randomStructure(random: Random, { isForeign }: Options): Record<string, unknown> {
  let ids = 0
  const pick = <T>(values: readonly T[]) => values[random(values.length)] as T
  const words = () => Array.from({ length: random(4) }, () => pick(WORDS)).join(' ')
  const maybe = (name: string, value: () => unknown) => (random(2) === 0 ? {} : { [name]: value() })
  const foreign = () =>
    isForeign && random(3) === 0
      ? {
          [pick(['x', 'vendor', 'locked', 'style_2'])]: pick<unknown>([
            null,
            1,
            'a',
            { deep: [1, { b: null }] },
          ]),
        }
      : {}
  const spelled = (name: string, other: string) => (isForeign && random(3) === 0 ? other : name)

  const contents: Readonly<Record<string, (level: number) => object>> = {
    header: () => ({ ...maybe(spelled('text', 'title'), words), ...maybe('level', () => 1 + random(3)) }),
    text: () => ({
      ...maybe(spelled('html', 'content'), words),
      ...maybe('alignment', () => pick(['left', 'right'])),
    }),
    button: () => ({
      ...maybe('text', words),
      ...maybe(spelled('url', 'href'), () => 'https://shop.example/'),
      ...maybe(spelled('backgroundColor', 'background_color'), () => pick(COLOURS)),
    }),
    image: () => ({
      ...maybe('src', () => 'https://shop.example/a.png'),
      ...maybe('width', () => pick(['auto', 'full', 240])),
    }),
    divider: () => maybe('color', () => pick(COLOURS)),
    spacer: () => maybe('height', () => random(100)),
    html: () => maybe('html', () => '<table><tr><td>x</td></tr></table>'),
    social: () => maybe('links', () => [{ platform: 'Mastodon', url: 'https://social.example/@a' }]),
    hero: () => ({ ...maybe('title', words), ...maybe('text', words) }),
    profile: () => ({ ...maybe('name', words), ...maybe('role', words) }),
    columns: level =>
      maybe('columns', () =>
        Array.from({ length: 1 + random(4) }, () => ({
          ...foreign(),
          ...maybe(spelled('blocks', 'children'), () => blocks(level + 1)),
          ...maybe('width', () => 5 + random(90)),
        })),
      ),
    dynamic: level => ({ source: 'items', ...maybe(spelled('blocks', 'children'), () => blocks(level + 1)) }),
    conditional: level => ({
      field: 'attributes.plan',
      value: pick<unknown>(['pro', 3, true]),
      ...maybe(spelled('blocks', 'then'), () => blocks(level + 1)),
      ...maybe(spelled('elseBlocks', 'else_blocks'), () => blocks(level + 1)),
    }),
    dropshadow: level => maybe('blocks', () => blocks(level + 1)),
  }
  const types = Object.keys(contents)

  function block(level: number): object {
    const type = pick(level >= 5 ? types.slice(0, 10) : types)
    if (isForeign && random(20) === 0) return { type: 'carousel', slides: [words()] }
    const frame = { id: `block${String(++ids)}`, type, content: { ...foreign(), ...contents[type]?.(level) } }
    return isForeign && random(4) === 0 ? { ...foreign(), ...frame } : frame
  }

  function blocks(level: number): object[] {
    return Array.from({ length: random(level === 1 ? 6 : 4) }, () => block(level))
  }

  return {
    ...foreign(),
    blocks: blocks(1),
    ...maybe('settings', () => ({ ...foreign(), ...maybe('contentWidth', () => 400 + random(400)) })),
  }
}
