/** Writes `docs/blocks.md`. Run from the project's folder: `node build/test/content/write-blocks-page.js`. */
import { writeFileSync } from 'node:fs'
import { blocksPage, PAGE } from './blocks-page.js'

writeFileSync(PAGE, blocksPage())
