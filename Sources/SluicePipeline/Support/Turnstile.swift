/// Lets so many through at a time, in the order in which they come.
///
/// Nobody is refused: those who wait are as many as those who call at a time.
package actor Turnstile {
    private let width: Int
    private var inside = 0
    private var waiting: [CheckedContinuation<Void, Never>] = []
    /// Of `waiting`: those before this one are through.
    private var first = 0

    package init(width: Int) { self.width = width }

    package func pass<R: Sendable>(_ body: @Sendable () async throws -> R) async rethrows -> R {
        await enter()
        defer { leave() }
        return try await body()
    }

    private func enter() async {
        if inside < width {
            inside += 1
        } else {
            await withCheckedContinuation { waiting.append($0) }
        }
    }

    private func leave() {
        guard first < waiting.count else {
            waiting.removeAll()
            first = 0
            inside -= 1
            return
        }
        // Its place goes to the next.
        let next = waiting[first]
        first += 1
        if first >= 1_024 {
            waiting.removeFirst(first)
            first = 0
        }
        next.resume()
    }
}
