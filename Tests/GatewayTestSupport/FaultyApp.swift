/// The app of the plugin FaultyC, which misbehaves on demand.
package enum FaultyApp {
    /// The stores and readings that FaultyC speaks of, without roles.
    package static let files = [
        ShopApp.table("orders", "rules"): "", ShopApp.table("readings", "rules"): "", ShopApp.table("tags", "rules"): "",
        ShopApp.table("stores", "schema"): """
        {
            "title": "Store", "bsonType": "object", "required": ["_id", "size"],
            "properties": { "_id": { "bsonType": "string" }, "name": { "bsonType": "string" }, "size": { "bsonType": "long" } }
        }
        """,
    ]
}
