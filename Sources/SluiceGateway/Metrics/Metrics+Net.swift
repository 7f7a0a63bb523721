import SluiceNet

extension Metrics {
    /// Counts connections and requests that the client port refuses.
    func refusals() -> @Sendable (NetRefusal) -> Void {
        let numbers = Dictionary(uniqueKeysWithValues: NetRefusal.allCases.map { ($0, number(.netRefusals, label: $0.rawValue)) })
        return { numbers[$0]?.add() }
    }
}
