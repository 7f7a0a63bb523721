import Testing

/// The check of the causal test finds what it is there for.
@Suite struct CausalCheckTests {
    /// Two registers. Transactions are given as what they read, which registers they write, and their value.
    private func history(_ client: Int, _ transactions: [([Int], [Int], Int)], unfinished: Int? = nil) -> [RegisterTransaction] {
        transactions.enumerated().map { number, transaction in
            RegisterTransaction(
                client: client, number: number, reads: transaction.0, writes: transaction.1, value: transaction.2,
                isCommitted: number != unfinished)
        }
    }

    @Test func `concurrent writes may win in any order`() {
        let histories = [history(0, [([0, 0], [0, 1], 16)]), history(1, [([0, 0], [0], 17), ([17, 0], [], 33)])]
        for final in [[16, 16], [17, 16]] { #expect(CausalCheck.problems(histories, final: final) == []) }
        // Reading the other one's later value of a register is no step back.
        let later = [histories[0] + history(0, [([17, 16], [], 32)]), histories[1]]
        #expect(CausalCheck.problems(later, final: [17, 16]) == [])
    }

    @Test func `a transaction that is seen in part is found`() {
        let histories = [history(0, [([0, 0], [0, 1], 16)]), history(1, [([16, 0], [], 17)])]
        #expect(CausalCheck.problems(histories, final: [16, 16]).count == 1)
    }

    @Test func `a step back is found`() {
        let histories = [history(0, [([0, 0], [0], 16)]), history(1, [([16, 0], [], 17), ([0, 0], [], 33)])]
        #expect(CausalCheck.problems(histories, final: [16, 0]).count == 1)
    }

    @Test func `missing an own write is found`() {
        #expect(CausalCheck.problems([history(0, [([0, 0], [0], 16), ([0, 0], [], 32)])], final: [16, 0]).count == 1)
    }

    @Test func `an effect without its cause is found`() {
        let histories = [
            history(0, [([0, 0], [0], 16)]), history(1, [([16, 0], [1], 17)]), history(2, [([0, 17], [], 18)]),
        ]
        #expect(CausalCheck.problems(histories, final: [16, 17]).count == 1)
    }

    @Test func `a lost write, a value from nowhere and one from the future are found`() {
        let histories = [history(0, [([0, 0], [0], 16), ([16, 0], [0], 32)])]
        #expect(CausalCheck.problems(histories, final: [16, 0]).count == 1)
        #expect(CausalCheck.problems(histories, final: [0, 0]).count == 1)
        #expect(CausalCheck.problems(histories, final: [99, 0]).count == 2)
        let circle = [history(0, [([33, 0], [0], 16)]), history(1, [([16, 0], [0], 33)])]
        #expect(CausalCheck.problems(circle, final: [16, 0]).count == 2)
    }

    @Test func `what a killed process began counts when somebody has seen it`() {
        let unfinished = history(0, [([0, 0], [0, 1], 16)], unfinished: 0)
        #expect(CausalCheck.problems([unfinished], final: [0, 0]) == [])
        #expect(CausalCheck.problems([unfinished], final: [16, 16]) == [])
        #expect(CausalCheck.problems([unfinished], final: [16, 0]).count == 1)
    }
}
