import Testing

@testable import SluiceKafka

struct FetchPauseTests {
    @Test func `a broker that has nothing and says so at once is not asked again at once`() {
        #expect(FetchPause.after(request: 1, bytes: 70, elapsed: 0) == 1_000)
        #expect(FetchPause.after(request: 1, bytes: 900, elapsed: 999) == 1_000)
    }

    @Test func `a broker that held the fetch, or had records, is`() {
        #expect(FetchPause.after(request: 1, bytes: 70, elapsed: 100_000) == 0)
        #expect(FetchPause.after(request: 1, bytes: 70, elapsed: 1_000) == 0)
        #expect(FetchPause.after(request: 1, bytes: 4_096, elapsed: 10) == 0)
        #expect(FetchPause.after(request: 1, bytes: 70, elapsed: -1) == 0)
    }

    @Test func `no other answer is waited after`() {
        for request in Int16(-1)...60 where request != 1 { #expect(FetchPause.after(request: request, bytes: 10, elapsed: 10) == 0) }
    }
}
