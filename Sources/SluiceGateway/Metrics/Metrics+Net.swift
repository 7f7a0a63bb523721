import SluiceNet

extension Metrics {
    /// Counts and logs connections and requests that the client port refuses.
    func refusals(loggedBy log: RefusalLog) -> @Sendable (NetRefusal) -> Void {
        let numbers = Dictionary(uniqueKeysWithValues: NetRefusal.allCases.map { ($0, number(.netRefusals, label: $0.rawValue)) })
        return { reason in
            numbers[reason]?.add()
            log.note(reason)
        }
    }
}
