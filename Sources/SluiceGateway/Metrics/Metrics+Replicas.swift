import SluicePostgres

extension Metrics {
    /// The bound of a user's client replicas, which counts those that give way.
    var replicaBound: ReplicaBound {
        let replaced = number(.replicasReplaced)
        return ReplicaBound(gaveWay: { replaced.add($0) })
    }
}
