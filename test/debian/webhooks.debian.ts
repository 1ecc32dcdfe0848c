/** The recipes of docs/webhooks.md in PHP and Go, which only Debian provides. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { RECIPES, tryRecipe } from '../webhooks/recipes.js'
import { PAGE } from '../webhooks/webhook-page.js'

const page = readFileSync(PAGE, 'utf8')

for (const recipe of RECIPES.filter(({ language }) => language === 'php' || language === 'go'))
  t.test(`the recipe in ${recipe.language} accepts valid signatures and rejects everything else`, t =>
    tryRecipe(t, page, recipe),
  )
