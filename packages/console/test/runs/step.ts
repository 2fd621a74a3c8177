import type { Page } from 'playwright-core'

/** The panel of the step that is open. */
export const step = (page: Page) => page.getByRole('complementary', { name: 'Step' })
