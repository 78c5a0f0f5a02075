-- A small mail-order shop: what the demo's agent has never seen. The data is computed, the same on every run.
CREATE SCHEMA shop;
COMMENT ON SCHEMA shop IS 'Sales of the mail-order shop';

CREATE TABLE shop.customers (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL,
    country text NOT NULL,
    signed_up date NOT NULL
);
COMMENT ON TABLE shop.customers IS 'People who have ordered at least once';

CREATE TABLE shop.products (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE,
    category text NOT NULL,
    price numeric(10, 2) NOT NULL CHECK (price > 0)
);
COMMENT ON TABLE shop.products IS 'What is on sale, with today''s price';

CREATE TABLE shop.orders (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    customer_id integer NOT NULL REFERENCES shop.customers,
    ordered_at timestamptz NOT NULL,
    status text NOT NULL CHECK (status IN ('paid', 'shipped', 'returned'))
);
COMMENT ON TABLE shop.orders IS 'One row an order; returned orders were refunded';

CREATE TABLE shop.order_items (
    order_id integer NOT NULL REFERENCES shop.orders,
    product_id integer NOT NULL REFERENCES shop.products,
    quantity integer NOT NULL CHECK (quantity > 0),
    unit_price numeric(10, 2) NOT NULL,
    PRIMARY KEY (order_id, product_id)
);
COMMENT ON TABLE shop.order_items IS 'The lines of an order; unit_price is what was paid at the time';

INSERT INTO shop.customers (name, country, signed_up)
SELECT
    (ARRAY['Ada', 'Bela', 'Chidi', 'Dora', 'Emil', 'Fatou', 'Goran', 'Hana', 'Ines', 'Jun'])[1 + i % 10]
        || ' ' || (ARRAY['Novak', 'Okoye', 'Larsen', 'Rossi', 'Meyer', 'Santos', 'Tanaka'])[1 + i % 7],
    (ARRAY['Germany', 'Nigeria', 'Norway', 'Italy', 'Brazil', 'Japan'])[1 + i % 6],
    date '2024-01-01' + i * 7
FROM generate_series(0, 59) i;

INSERT INTO shop.products (name, category, price)
VALUES
    ('oak desk', 'furniture', 349.00), ('desk lamp', 'lighting', 45.50), ('floor lamp', 'lighting', 89.00),
    ('office chair', 'furniture', 219.00), ('bookshelf', 'furniture', 129.00), ('notebook', 'stationery', 4.20),
    ('fountain pen', 'stationery', 38.00), ('ink bottle', 'stationery', 9.90), ('monitor arm', 'accessories', 74.00),
    ('cable tray', 'accessories', 19.50), ('desk mat', 'accessories', 24.00), ('led strip', 'lighting', 17.80);

INSERT INTO shop.orders (customer_id, ordered_at, status)
SELECT
    1 + (i * 37 + i / 7 * i / 11) % 60,
    timestamptz '2025-01-01 08:00+00' + i * interval '7 hours',
    CASE WHEN i % 17 = 0 THEN 'returned' WHEN i % 5 = 0 THEN 'paid' ELSE 'shipped' END
FROM generate_series(1, 900) i;

INSERT INTO shop.order_items (order_id, product_id, quantity, unit_price)
SELECT o.id, p.id, 1 + (o.id + line) % 3, round(p.price * (0.9 + (o.id % 3) * 0.05), 2)
FROM shop.orders o
CROSS JOIN generate_series(0, 2) line
JOIN shop.products p ON p.id = 1 + (o.id * 5 + line * 7) % 12;

ANALYZE shop.customers, shop.products, shop.orders, shop.order_items;
