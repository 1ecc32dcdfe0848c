// Lint rules of .svelte files. Those of .ts files: .oxlintrc.json.
import regexp from 'eslint-plugin-regexp'
import svelte from 'eslint-plugin-svelte'
import tseslint from 'typescript-eslint'

export default [
  { ignores: ['dist/**', 'build*/**', 'data/**', 'node_modules/**'] },
  // The policy of the console's pages forbids style attributes; style: directives set properties by script. Types of .svelte files are svelte-check's concern.
  ...svelte.configs['flat/recommended'],
  {
    files: ['**/*.svelte', '**/*.svelte.ts'],
    languageOptions: { parserOptions: { parser: tseslint.parser, extraFileExtensions: ['.svelte'] } },
    rules: {
      'no-restricted-syntax': [
        'error',
        { selector: 'SvelteAttribute[key.name="style"]', message: 'Use a class, or a style: directive.' },
      ],
      'svelte/no-unused-svelte-ignore': 'off',
      'svelte/no-navigation-without-resolve': 'off',
      'svelte/prefer-svelte-reactivity': 'off',
    },
  },
  {
    // As in .oxlintrc.json.
    files: ['src/**/*.svelte'],
    plugins: { regexp },
    rules: {
      'regexp/no-super-linear-backtracking': ['error', { report: 'potential' }],
      'regexp/no-super-linear-move': ['error', { report: 'potential' }],
    },
  },
]
