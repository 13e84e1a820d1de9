/** Calls whom a user wants told. What it throws is an unhandled rejection: who brought the news has done nothing wrong. */
export function tell<News extends unknown[]>(listener: ((...news: News) => unknown) | undefined, ...news: News): void {
  try {
    listener?.(...news);
  } catch (error) {
    void Promise.reject(error);
  }
}
