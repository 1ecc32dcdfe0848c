/** The colour of a workspace on its pages: whatever it is, what is written on it can be read. */
import t from 'tap'
import { brandStyle } from '../../../src/http/public/style.js'
import { SeededRandom } from '../../../src/world/fake-random.js'

/** WCAG 2.2, worked out another way than the code does: by its own formula of contrast. */
function contrast(one: string, other: string): number {
  const [dark = 0, light = 0] = [lightness(one), lightness(other)].sort((a, b) => a - b)
  return (light + 0.05) / (dark + 0.05)
}

function lightness(color: string): number {
  const channel = (at: number) => {
    const value = Number.parseInt(color.slice(at, at + 2), 16) / 255
    return value <= 0.04045 ? value / 12.92 : Math.pow((value + 0.055) / 1.055, 2.4)
  }
  return 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
}

t.test('text on any colour has a contrast of 4.5 to 1 at least', async t => {
  const random = new SeededRandom(7)
  const colors = Array.from({ length: 2_000 }, () => `#${random.bytes(3).toString('hex')}`)
  const poor = ['#000000', '#ffffff', '#767676', '#ff0000', ...colors].filter(color => {
    const [, background = '', text = ''] =
      /--brand:(#\w{6});--on-brand:(#\w{3})/.exec(brandStyle(color)) ?? []
    return background !== color || contrast(color, text === '#000' ? '#000000' : '#ffffff') < 4.5
  })
  t.same(poor, [])
})

t.test('what is no colour is no style', async t => {
  for (const text of [null, '', 'red', '#fff', '#FFFFFF', '#12345g', '#123456;}body{display:none'])
    t.equal(brandStyle(text), '')
})
