/** The recipes of docs/webhooks.md in the languages that only Debian brings along: PHP and Go. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { RECIPES, tryRecipe } from '../webhooks/recipes.js'
import { PAGE } from '../webhooks/webhook-page.js'

const page = readFileSync(PAGE, 'utf8')

for (const recipe of RECIPES.filter(({ language }) => language === 'php' || language === 'go'))
  t.test(`the recipe in ${recipe.language} takes what is right and refuses everything else`, t =>
    tryRecipe(t, page, recipe),
  )
